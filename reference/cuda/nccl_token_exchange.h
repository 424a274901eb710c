// Rows of tokens between GPUs: what a rank asks NCCL for once it knows how many rows go where (nccl.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reference/cuda/nccl.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::cuda {

/// A rank's part of a dispatch_tokens or return_tokens: how many rows go where is on the device, and is asked for when
/// the collective runs.
struct NcclTokenExchange {
  const NcclCalls& nccl;  ///< outlives it
  ExchangeOperands operands;
  int rank = 0, ranks = 1;
  std::shared_ptr<std::byte> table{};  ///< on the device: the sizes of all ranks
  /// Pinned, on the host: the same, then those of this rank's experts. Behind a collective that a failed peer never
  /// joins, a copy to pageable memory would keep its thread for good.
  std::shared_ptr<std::byte> host{};
  std::size_t sizes = 0;  ///< of all ranks

  /// What fills the table.
  [[nodiscard]] NcclStep gather() const;
  /// Puts the table's way to the host on the stream.
  void fetch(cudaStream_t stream) const;
  /// Once the table is there.
  [[nodiscard]] TokenRoutes routes() const { return {{numbers(), sizes}, ranks, operands.own_rows}; }
  [[nodiscard]] NcclSteps moves(const TokenRoutes& routes) const;
  /// Puts own sizes and what no row comes to on the stream.
  void finish(const TokenRoutes& routes, cudaStream_t stream) const;

 private:
  [[nodiscard]] std::int32_t* numbers() const { return reinterpret_cast<std::int32_t*>(host.get()); }
};
/// Of member `rank`, whose device is the current one. Throws BackendError where there is no memory for the table.
[[nodiscard]] NcclTokenExchange nccl_token_exchange(const NcclOperands& operands, int rank);

}  // namespace gpubench::cuda

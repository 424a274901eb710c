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
  std::shared_ptr<std::byte> table{};   ///< on the device: the sizes of all ranks
  std::vector<std::int32_t> counted{};  ///< on the host
  std::vector<std::int32_t> own{};      ///< of this rank's experts

  /// What fills the table.
  [[nodiscard]] NcclStep gather() const;
  /// Once the table has been counted.
  [[nodiscard]] TokenRoutes routes() const { return {counted, ranks, operands.own_rows}; }
  [[nodiscard]] NcclSteps moves(const TokenRoutes& routes) const;
  /// Puts own sizes and what no row comes to on the stream.
  void finish(const TokenRoutes& routes, cudaStream_t stream);
};
/// Of member `rank`, whose device is the current one. Throws BackendError where there is no memory for the table.
[[nodiscard]] NcclTokenExchange nccl_token_exchange(const NcclOperands& operands, int rank);

}  // namespace gpubench::cuda

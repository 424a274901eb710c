// The part of NCCL that is used, as a table, and collectives as the calls that each rank makes for them. The library is
// loaded when several GPUs work together, so that everything else runs without it.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::cuda {

struct NcclCalls {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
  decltype(&ncclCommSplit) comm_split = nullptr;  ///< null: groups of some ranks are set up as all of them are
#endif
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
};

/// Those of libnccl.so.2, loaded at the first call and for good. Throws Unsupported where the loader does not find it,
/// where it lacks a function, and where it is older than the header that this was built with.
[[nodiscard]] const NcclCalls& nccl_calls();

/// "2.28.9", as the library says.
[[nodiscard]] std::string nccl_version(const NcclCalls& calls);

/// A call of a rank, one of those that it makes for a collective, within a group.
using NcclStep = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;
using NcclSteps = std::vector<NcclStep>;

/// The tensors of a bound collective.
struct NcclOperands {
  const NcclCalls& nccl;  ///< outlives the steps
  const OpCall& call;
  std::span<const Tensor> x, y;
  int ranks;  ///< that take part: the members of the call's group
};

/// What member `rank` of the group calls, all at once; nothing where it has no part. Moves are of bytes, so that no
/// type is lacking.
[[nodiscard]] NcclSteps nccl_steps(const NcclOperands& operands, int rank);

/// The type that is reduced. Throws Unsupported unless it is f64, f32, f16 or bf16.
[[nodiscard]] ncclDataType_t nccl_reduced_type(const OpCall& call, const TensorSpec& tensor);

// Rows of tokens between GPUs: what a rank asks NCCL for once it knows how many rows go where (nccl.cpp).

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

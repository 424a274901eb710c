// NCCL's functions as a table, and the NCCL calls that each rank makes for a collective. NCCL is loaded only for
// several GPUs: everything else runs without it.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
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
  decltype(&ncclCommSplit) comm_split = nullptr;  ///< null: group communicators are set up from scratch
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

/// Functions of libnccl.so.2, loaded at the first call and never unloaded. Throws Unsupported if the library or one of
/// the functions is missing, or if it is older than the header of this build.
[[nodiscard]] const NcclCalls& nccl_calls();

/// "2.28.9", as the library reports it.
[[nodiscard]] std::string nccl_version(const NcclCalls& calls);

/// An NCCL call of one rank, within a group.
using NcclStep = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;
using NcclSteps = std::vector<NcclStep>;

struct NcclOperands {
  const NcclCalls& nccl;  ///< must outlive the steps
  const OpCall& call;
  std::span<const Tensor> x, y;
  int ranks;  ///< members of the call's group
};

/// NCCL calls of member `rank`, made as one group; empty if it takes no part. Data are moved as bytes, so every type
/// can be moved.
[[nodiscard]] NcclSteps nccl_steps(const NcclOperands& operands, int rank);

/// The reduced type. Throws Unsupported unless it is f64, f32, f16 or bf16.
[[nodiscard]] ncclDataType_t nccl_reduced_type(const OpCall& call, const TensorSpec& tensor);

/// A rank's part of a dispatch_tokens or return_tokens. The numbers of rows per rank and expert are in device memory
/// and are read when the collective runs.
struct NcclTokenExchange {
  const NcclCalls& nccl;  ///< must outlive this
  ExchangeOperands operands;
  int rank = 0, ranks = 1;
  std::shared_ptr<std::byte> table{};  ///< device memory: sizes of all ranks
  /// Pinned host memory: the same sizes, then those of this rank's experts. If a peer fails before it joins the
  /// collective, a copy to pageable memory would block its thread forever.
  std::shared_ptr<std::byte> host{};
  std::size_t sizes = 0;  ///< of all ranks

  /// Gathers the sizes of all ranks into `table`.
  [[nodiscard]] NcclStep gather() const;
  /// Enqueues the copy of the sizes to the host.
  void fetch(cudaStream_t stream) const;
  /// Valid once the copy is done.
  [[nodiscard]] TokenRoutes routes() const { return {{numbers(), sizes}, ranks, operands.own_rows}; }
  [[nodiscard]] NcclSteps moves(const TokenRoutes& routes) const;
  /// Enqueues the writes of own sizes and of rows that receive nothing.
  void finish(const TokenRoutes& routes, cudaStream_t stream) const;

 private:
  [[nodiscard]] std::int32_t* numbers() const { return reinterpret_cast<std::int32_t*>(host.get()); }
};
/// For member `rank`, whose device is current. Throws BackendError without memory for the table.
[[nodiscard]] NcclTokenExchange nccl_token_exchange(const NcclOperands& operands, int rank);

/// Runs NCCL calls that ranks make together, on a thread per rank. The threads share their state, so that a hanging one
/// can be abandoned.
class EachRank {
 public:
  /// Time for calls to return once another has failed; a call takes some 10 us unless it hangs.
  static constexpr auto grace = std::chrono::milliseconds(500);

  EachRank(std::span<const int> ranks, const std::function<void(int rank)>& work)
      : shared_(std::make_shared<Shared>()) {
    shared_->failures.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::thread([shared = shared_, work, i, rank = ranks[i]] {
        std::exception_ptr failure;
        try {
          work(rank);
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(shared->mutex);
        shared->failures[i] = failure;
        ++shared->through;
        shared->changed.notify_all();
      }).detach();
    }
  }

  /// Whether all threads ended within `seconds`, or soon after one of them failed.
  [[nodiscard]] bool ended_within(double seconds) {
    std::unique_lock lock(shared_->mutex);
    const auto all = [this] { return shared_->through == shared_->failures.size(); };
    (void)shared_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return all() || failed(); });
    return shared_->changed.wait_for(lock, failed() ? grace : std::chrono::milliseconds(0), all);
  }

  /// Rethrows the exception of the first rank that failed.
  void rethrow() {
    const std::lock_guard lock(shared_->mutex);
    for (const std::exception_ptr& failure : shared_->failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::exception_ptr> failures;
    std::size_t through = 0;
  };
  [[nodiscard]] bool failed() const {
    return std::any_of(shared_->failures.begin(), shared_->failures.end(),
                       [](const auto& failure) { return failure != nullptr; });
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace gpubench::cuda

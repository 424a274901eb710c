// The part of NCCL that is used, as a table, and collectives as the calls that each rank makes for them. The library is
// loaded when several GPUs work together, so that everything else runs without it.
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

// What NCCL does of several ranks together: on a thread of each, and no longer than it may take.

/// Work of each of these ranks on a thread of its own: what NCCL does together with the other ranks. The threads share
/// what they write, so that one that hangs may be left behind.
class EachRank {
 public:
  /// How long a call may take to return by itself once another has failed. Calls take some 10 us, unless they hang.
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

  /// Whether all are through, in one way or another, after `seconds`, or soon after one of them has failed.
  [[nodiscard]] bool ended_within(double seconds) {
    std::unique_lock lock(shared_->mutex);
    const auto all = [this] { return shared_->through == shared_->failures.size(); };
    (void)shared_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return all() || failed(); });
    return shared_->changed.wait_for(lock, failed() ? grace : std::chrono::milliseconds(0), all);
  }

  /// Throws what the first rank that failed has thrown.
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

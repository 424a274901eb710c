// The communicators block: a call returns once its work is on the stream, which is not to wait for the device. (Those
// that do not block start a thread at the end of each group: tens of microseconds, more than a short collective takes.)
//
// So a call can hang, in the first collective of its kind for example, when ranks connect and a peer has failed. Then
// stop() ends it from outside: it aborts the communicator that the call is in, after a while in which the call may
// return by itself. A rank that has given up in any way has its communicator aborted, which ends what its device still
// waits for; no other can be made in its place in this process.
#include "reference/cuda/cuda_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/nccl.h"
#include "reference/cuda/nccl_token_exchange.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

// How long a call may take to return by itself after stop(). Calls take some 10 us, unless they hang.
constexpr auto grace = std::chrono::milliseconds(500);

/// Work of each rank on a thread of its own: what NCCL does together with the other ranks. The threads share what they
/// write, so that one that hangs may be left behind.
class EachRank {
 public:
  EachRank(int ranks, const std::function<void(int rank)>& work) : shared_(std::make_shared<Shared>()) {
    shared_->failures.resize(size(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      std::thread([shared = shared_, work, rank] {
        std::exception_ptr failure;
        try {
          work(rank);
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(shared->mutex);
        shared->failures[size(rank)] = failure;
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
    return shared_->changed.wait_for(lock, failed() ? grace : Clock::duration(0), all);
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

class NcclLaunch final : public LaunchImpl {
 public:
  NcclLaunch(RankGroup members, std::size_t group, std::vector<NcclSteps> steps,
             std::vector<NcclTokenExchange> exchanges)
      : members_(std::move(members)), group_(group), steps_(std::move(steps)), exchanges_(std::move(exchanges)) {}
  /// The index of its members' communicators.
  [[nodiscard]] std::size_t group() const { return group_; }
  [[nodiscard]] const NcclSteps& of(int rank) const { return steps_.at(place(rank)); }
  /// Null where the launch is of another collective.
  [[nodiscard]] NcclTokenExchange* exchange_of(int rank) const {
    return exchanges_.empty() ? nullptr : &exchanges_.at(place(rank));
  }

 private:
  [[nodiscard]] std::size_t place(int rank) const { return size(members_.position(rank).value()); }

  RankGroup members_;
  std::size_t group_;
  std::vector<NcclSteps> steps_;                      // by member
  mutable std::vector<NcclTokenExchange> exchanges_;  // by member, which alone uses its own
};

class NcclCommunicator final : public CudaCommunicator {
 public:
  NcclCommunicator(const NcclCalls& calls, std::vector<int> devices, double deadline_s)
      : CudaCommunicator(devices),
        nccl_(calls),
        ordinals_(std::move(devices)),
        deadline_s_(deadline_s),
        ranks_(size(ranks())) {
    for (auto& rank : ranks_) rank = std::make_shared<Rank>();
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ranks_[size(rank)]->token = allocate(sizeof(float));
      check(cudaMemset(ranks_[size(rank)]->token.get(), 0, sizeof(float)), "clearing a token");
    }
    try {
      (void)group_of(RankGroup::first(ranks()));
    } catch (...) {
      for (int rank = 0; rank < ranks(); ++rank) {
        if (!ranks_[size(rank)]->in_call) give_up(rank);
      }
      throw;
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override { tear_down(); }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    expect_collective(call, tensors);
    for (const TensorSpec& tensor : tensors) {
      if (reduces(call.kind)) (void)nccl_reduced_type(call, tensor);
    }
    return std::make_shared<CollectivePlan>(call, "nccl:" + nccl_version(nccl_));
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const OpCall& call = collective_of(plan);
    const std::size_t inputs = call.inputs.size();
    const int members = call.group.size();
    const NcclOperands operands{nccl_, call, tensors.first(inputs), tensors.subspan(inputs), members};
    std::vector<NcclSteps> steps;
    std::vector<NcclTokenExchange> exchanges;
    for (int member = 0; member < members; ++member) {
      if (exchanges_tokens(call.kind)) {
        use_device_of(call.group[member]);
        exchanges.push_back(nccl_token_exchange(operands, member));
      } else {
        steps.push_back(nccl_steps(operands, member));
      }
    }
    return std::make_shared<NcclLaunch>(call.group, group_of(call.group), std::move(steps), std::move(exchanges));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    const auto& collective = dynamic_cast<const NcclLaunch&>(*launch);
    if (NcclTokenExchange* const exchange = collective.exchange_of(rank))
      return enqueue_exchange(*exchange, collective.group(), rank, stream);
    grouped(collective.of(rank), collective.group(), rank, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    std::byte* token = ranks_[size(rank)]->token.get();
    grouped({[this, token](ncclComm_t comm, cudaStream_t on) {
              return nccl_.all_reduce(token, token, 1, ncclFloat32, ncclSum, comm, on);
            }},
            all_ranks, rank, stream);
  }

  void stop() override {
    CudaCommunicator::stop();
    const Clock::time_point begin = Clock::now();
    for (int rank = 0; rank < ranks(); ++rank) {
      while (ranks_[size(rank)]->in_call && Clock::now() - begin < grace) std::this_thread::yield();
      if (ranks_[size(rank)]->in_call) give_up(rank);
    }
  }
  [[nodiscard]] bool restart() override { return !any_aborted() && CudaCommunicator::restart(); }

 protected:
  void poll(int rank) override { expect_sound(rank, "a collective"); }

  void give_up(int rank) override {
    Rank& own = *ranks_[size(rank)];
    if (own.aborted.exchange(true)) return;
    for (ncclComm_t communicator : own.communicators) {
      if (communicator != nullptr) (void)nccl_.comm_abort(communicator);
    }
  }

 private:
  static constexpr std::size_t all_ranks = 0;  // the group that is set up first

  struct Rank {
    std::deque<ncclComm_t> communicators;  // by group; null: the rank is not in it. Never moved: calls write into them
    std::shared_ptr<std::byte> token;      // one number, summed up when ranks line up
    std::atomic<bool> in_call{false};
    std::atomic<bool> aborted{false};
  };

  /// While a thread is in a call that may hang.
  class InCall {
   public:
    explicit InCall(Rank& rank) : rank_(rank) { rank_.in_call = true; }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall() { rank_.in_call = false; }

   private:
    Rank& rank_;
  };

  /// Communicators of these members, which are set up where there are none: that of all ranks at first, others out of
  /// it.
  [[nodiscard]] std::size_t group_of(const RankGroup& members) {
    const auto known = std::find(groups_.begin(), groups_.end(), members);
    if (known != groups_.end()) return static_cast<std::size_t>(known - groups_.begin());
    for (const auto& rank : ranks_) rank->communicators.push_back(nullptr);
    groups_.push_back(members);
    set_up(members);
    return groups_.size() - 1;
  }

  [[nodiscard]] bool splits() const {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
    return nccl_.comm_split != nullptr && groups_.size() > 1;
#else
    return false;
#endif
  }

  /// A rank's part of a set-up: every rank's where all split what they have, else each member's.
  static ncclResult_t join(const NcclCalls& nccl, const RankGroup& members, bool split, const ncclUniqueId& id,
                           int rank, Rank& own) {
    const std::optional<int> place = members.position(rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
    if (split) {
      return nccl.comm_split(own.communicators[all_ranks], place ? 0 : NCCL_SPLIT_NOCOLOR, place.value_or(0),
                             &own.communicators.back(), &config);
    }
#endif
    if (!place) return ncclSuccess;
    return nccl.comm_init_rank_config(&own.communicators.back(), members.size(), id, *place, &config);
  }

  void set_up(const RankGroup& members) {
    const bool split = splits();
    ncclUniqueId id{};
    if (!split) expect(nccl_.get_unique_id(&id), nullptr, "making an id");
    EachRank all(ranks(), [&nccl = nccl_, ordinals = ordinals_, members, split, id, ranks = ranks_](int rank) {
      check(cudaSetDevice(ordinals[size(rank)]), "selecting a rank's device");
      Rank& own = *ranks[size(rank)];
      const InCall in_call(own);
      expect_success(nccl, join(nccl, members, split, id, rank, own), nullptr, "setting up a communicator");
    });
    const bool ended = all.ended_within(deadline_s_);
    std::string why = fmt::format("cuda: NCCL has not set up {} ranks within {:g} s", members.size(), deadline_s_);
    try {
      all.rethrow();
    } catch (const BackendError& e) {
      if (ended) throw;
      why = e.what();
    }
    // Nothing ends a set-up from outside, for its communicator is not known yet: the process has to.
    if (!ended) throw DeviceLost(why);
  }

  [[nodiscard]] bool any_aborted() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->aborted.load(); });
  }

  // Ending is something that ranks do together; where one has aborted the others would wait for ever.
  void tear_down() {
    constexpr double patience_s = 10.0;
    if (any_aborted()) {
      for (int rank = 0; rank < ranks(); ++rank) give_up(rank);
      return;
    }
    EachRank all(ranks(), [&nccl = nccl_, ordinals = ordinals_, ranks = ranks_](int rank) {
      check(cudaSetDevice(ordinals[size(rank)]), "selecting a rank's device");
      std::deque<ncclComm_t>& own = ranks[size(rank)]->communicators;
      for (auto communicator = own.rbegin(); communicator != own.rend(); ++communicator) {
        if (*communicator == nullptr) continue;
        (void)nccl.comm_finalize(*communicator);
        (void)nccl.comm_destroy(*communicator);
      }
    });
    (void)all.ended_within(patience_s);  // what hangs is left to the end of the process
  }

  // NCCL wants to know how many rows go where, so the host waits for the sizes: as implementations for training do. No
  // gate may hold the device back then.
  void enqueue_exchange(NcclTokenExchange& exchange, std::size_t group, int rank, cudaStream_t stream) {
    gate().arrive(rank);
    grouped({exchange.gather()}, group, rank, stream);
    check(cudaMemcpyAsync(exchange.counted.data(), exchange.table.get(),
                          exchange.counted.size() * sizeof exchange.counted[0], cudaMemcpyDeviceToHost, stream),
          "copying sizes");
    wait(rank, stream);
    const TokenRoutes routes = exchange.routes();
    grouped(exchange.moves(routes), group, rank, stream);
    exchange.finish(routes, stream);
  }

  void grouped(const NcclSteps& steps, std::size_t group, int rank, cudaStream_t stream) {
    if (steps.empty()) return;
    Rank& own = *ranks_[size(rank)];
    ncclComm_t communicator = own.communicators[group];
    ncclResult_t result = ncclSuccess;
    ncclResult_t ended = ncclSuccess;
    {
      const InCall in_call(own);
      expect_going(rank);  // in this order: either stop() sees the call, or it is not begun
      result = nccl_.group_start();
      for (const NcclStep& step : steps) {
        if (result == ncclSuccess) result = step(communicator, stream);
      }
      ended = nccl_.group_end();  // also after an error: the thread must not stay within the group
    }
    expect_going(rank);  // before anything is asked of a communicator that stop() may have aborted
    expect(result, communicator, "enqueueing a collective");
    expect(ended, communicator, "enqueueing a collective");
  }

  /// Throws DeviceLost where one of the rank's communicators has met an error: it is beyond repair.
  void expect_sound(int rank, const char* what) {
    for (ncclComm_t communicator : ranks_[size(rank)]->communicators) {
      if (communicator == nullptr) continue;
      ncclResult_t state = ncclSuccess;
      expect(nccl_.comm_get_async_error(communicator, &state), communicator, "asking for a communicator's state");
      if (state == ncclSuccess) continue;
      const std::string text = words(nccl_, state, communicator, what);
      give_up(rank);
      throw DeviceLost(text);
    }
  }

  void expect(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    expect_success(nccl_, result, communicator, what);
  }
  static void expect_success(const NcclCalls& nccl, ncclResult_t result, ncclComm_t communicator, const char* what) {
    if (result != ncclSuccess) throw BackendError(words(nccl, result, communicator, what));
  }

  [[nodiscard]] static std::string words(const NcclCalls& nccl, ncclResult_t result, ncclComm_t communicator,
                                         const char* what) {
    return fmt::format("cuda: NCCL: {} failed: {} ({}): {}", what, nccl.get_error_string(result),
                       static_cast<int>(result), nccl.get_last_error(communicator));
  }

  const NcclCalls& nccl_;
  std::vector<int> ordinals_;
  double deadline_s_;
  std::vector<RankGroup> groups_;
  std::vector<std::shared_ptr<Rank>> ranks_;  // held by threads that hang, too
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                         double deadline_s) {
  return std::make_unique<NcclCommunicator>(calls, std::move(devices), deadline_s);
}

}  // namespace gpubench::cuda

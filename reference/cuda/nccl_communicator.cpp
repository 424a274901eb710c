// The communicators block: a call returns once its work is on the stream, which is not to wait for the device. (Those
// that do not block start a thread at the end of each group: tens of microseconds, more than a short collective takes.)
//
// So a call can hang, in the first collective of its kind for example, when ranks connect and a peer has failed. Then
// stop() ends it from outside: it aborts the communicator that the call is in, after a while in which the call may
// return by itself. A rank that has given up in any way has its communicator aborted, which ends what its device still
// waits for; no other can be made in its place in this process.
#include "reference/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/nccl_steps.h"

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
  explicit NcclLaunch(std::vector<NcclSteps> ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] const NcclSteps& of(int rank) const { return ranks_.at(size(rank)); }

 private:
  std::vector<NcclSteps> ranks_;
};

class NcclCommunicator final : public CudaCommunicator {
 public:
  NcclCommunicator(const NcclCalls& calls, std::vector<int> devices, double deadline_s)
      : CudaCommunicator(devices), nccl_(calls), ordinals_(std::move(devices)), ranks_(size(ranks())) {
    for (auto& rank : ranks_) rank = std::make_shared<Rank>();
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ranks_[size(rank)]->token = allocate(sizeof(float));
      check(cudaMemset(ranks_[size(rank)]->token.get(), 0, sizeof(float)), "clearing a token");
    }
    try {
      set_up(deadline_s);
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
    const NcclOperands operands{nccl_, call, tensors.first(inputs), tensors.subspan(inputs), ranks()};
    std::vector<NcclSteps> steps;
    for (int rank = 0; rank < ranks(); ++rank) steps.push_back(nccl_steps(operands, rank));
    return std::make_shared<NcclLaunch>(std::move(steps));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    grouped(dynamic_cast<const NcclLaunch&>(*launch).of(rank), rank, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    std::byte* token = ranks_[size(rank)]->token.get();
    grouped({[this, token](ncclComm_t comm, cudaStream_t on) {
              return nccl_.all_reduce(token, token, 1, ncclFloat32, ncclSum, comm, on);
            }},
            rank, stream);
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
    if (!own.aborted.exchange(true) && own.communicator != nullptr) (void)nccl_.comm_abort(own.communicator);
  }

 private:
  struct Rank {
    ncclComm_t communicator = nullptr;
    std::shared_ptr<std::byte> token;  // one number, summed up when ranks line up
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

  void set_up(double deadline_s) {
    ncclUniqueId id{};
    expect(nccl_.get_unique_id(&id), nullptr, "making an id");
    EachRank all(ranks(), [&nccl = nccl_, ordinals = ordinals_, id, ranks = ranks_](int rank) {
      check(cudaSetDevice(ordinals[size(rank)]), "selecting a rank's device");
      Rank& own = *ranks[size(rank)];
      const InCall in_call(own);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 1;
      expect_success(nccl,
                     nccl.comm_init_rank_config(&own.communicator, static_cast<int>(ranks.size()), id, rank, &config),
                     nullptr, "setting up a communicator");
    });
    const bool ended = all.ended_within(deadline_s);
    std::string why = fmt::format("cuda: NCCL has not set up {} ranks within {:g} s", ranks(), deadline_s);
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
      (void)nccl.comm_finalize(ranks[size(rank)]->communicator);
      (void)nccl.comm_destroy(ranks[size(rank)]->communicator);
    });
    (void)all.ended_within(patience_s);  // what hangs is left to the end of the process
  }

  void grouped(const NcclSteps& steps, int rank, cudaStream_t stream) {
    if (steps.empty()) return;
    Rank& own = *ranks_[size(rank)];
    ncclResult_t result = ncclSuccess;
    ncclResult_t ended = ncclSuccess;
    {
      const InCall in_call(own);
      expect_going(rank);  // in this order: either stop() sees the call, or it is not begun
      result = nccl_.group_start();
      for (const NcclStep& step : steps) {
        if (result == ncclSuccess) result = step(own.communicator, stream);
      }
      ended = nccl_.group_end();  // also after an error: the thread must not stay within the group
    }
    expect_going(rank);  // before anything is asked of a communicator that stop() may have aborted
    expect(result, own.communicator, "enqueueing a collective");
    expect(ended, own.communicator, "enqueueing a collective");
  }

  /// Throws DeviceLost where the communicator has met an error: it is beyond repair.
  void expect_sound(int rank, const char* what) {
    ncclComm_t communicator = ranks_[size(rank)]->communicator;
    ncclResult_t state = ncclSuccess;
    expect(nccl_.comm_get_async_error(communicator, &state), communicator, "asking for a communicator's state");
    if (state == ncclSuccess) return;
    const std::string text = words(nccl_, state, communicator, what);
    give_up(rank);
    throw DeviceLost(text);
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
  std::vector<std::shared_ptr<Rank>> ranks_;  // held by threads that hang, too
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                         double deadline_s) {
  return std::make_unique<NcclCommunicator>(calls, std::move(devices), deadline_s);
}

}  // namespace gpubench::cuda

// While a communicator answers "in progress" nothing else may be asked of it, and nothing put on the stream that it was
// given; so each call is followed until it has been enqueued. That does not wait for the device.
//
// A rank that has given up aborts its communicator, which ends what its device still waits for; no other can be made in
// its place in this process.
#include "reference/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/nccl_steps.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

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
      : CudaCommunicator(std::move(devices)), nccl_(calls), ranks_(size(ranks())) {
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ranks_[size(rank)].token = allocate(sizeof(float));
      check(cudaMemset(ranks_[size(rank)].token.get(), 0, sizeof(float)), "clearing a token");
    }
    try {
      set_up(deadline_s);
    } catch (...) {
      for (int rank = 0; rank < ranks(); ++rank) give_up(rank);
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
    std::byte* token = ranks_[size(rank)].token.get();
    grouped({[this, token](ncclComm_t comm, cudaStream_t on) {
              return nccl_.all_reduce(token, token, 1, ncclFloat32, ncclSum, comm, on);
            }},
            rank, stream);
  }

  [[nodiscard]] bool restart() override { return !any_aborted() && CudaCommunicator::restart(); }

 protected:
  void poll(int rank) override { (void)state_of(rank, "a collective"); }

  void give_up(int rank) override {
    Rank& own = ranks_[size(rank)];
    if (!own.aborted.exchange(true) && own.communicator != nullptr) (void)nccl_.comm_abort(own.communicator);
  }

 private:
  struct Rank {
    ncclComm_t communicator = nullptr;
    std::shared_ptr<std::byte> token;  // one number, summed up when ranks line up
    std::atomic<bool> aborted{false};
  };

  void set_up(double deadline_s) {
    ncclUniqueId id{};
    expect(nccl_.get_unique_id(&id), nullptr, "making an id");
    expect(nccl_.group_start(), nullptr, "beginning a group");
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      expect(nccl_.comm_init_rank_config(&ranks_[size(rank)].communicator, ranks(), id, rank, &config), nullptr,
             "setting up a communicator");
    }
    expect(nccl_.group_end(), nullptr, "setting up communicators");
    const Clock::time_point begin = Clock::now();
    for (int rank = 0; rank < ranks(); ++rank) {
      while (state_of(rank, "setting up a communicator") == ncclInProgress) {
        if (std::chrono::duration<double>(Clock::now() - begin).count() > deadline_s) {
          throw BackendError(
              fmt::format("cuda: NCCL has not set up rank {} of {} within {:g} s", rank, ranks(), deadline_s));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  [[nodiscard]] bool any_aborted() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.aborted.load(); });
  }

  // Ending is something that ranks do together: all begin before any is waited for, and where one has aborted the
  // others would wait for ever.
  void tear_down() {
    constexpr auto patience = std::chrono::seconds(10);
    for (Rank& rank : ranks_) {
      if (!any_aborted()) (void)nccl_.comm_finalize(rank.communicator);
    }
    const Clock::time_point begin = Clock::now();
    for (int rank = 0; rank < ranks(); ++rank) {
      ncclComm_t communicator = ranks_[size(rank)].communicator;
      ncclResult_t state = any_aborted() ? ncclRemoteError : ncclInProgress;
      while (state == ncclInProgress && Clock::now() - begin < patience) {
        std::this_thread::yield();
        if (nccl_.comm_get_async_error(communicator, &state) != ncclSuccess) break;
      }
      if (state == ncclSuccess) {
        (void)nccl_.comm_destroy(communicator);
      } else {
        give_up(rank);
      }
    }
  }

  void grouped(const NcclSteps& steps, int rank, cudaStream_t stream) {
    if (steps.empty()) return;
    ncclComm_t communicator = ranks_[size(rank)].communicator;
    expect(nccl_.group_start(), communicator, "beginning a group");
    ncclResult_t result = ncclSuccess;
    for (const NcclStep& step : steps) {
      if (result == ncclSuccess || result == ncclInProgress) result = step(communicator, stream);
    }
    const ncclResult_t ended = nccl_.group_end();  // also after an error: the thread must not stay within the group
    expect(result, communicator, "enqueueing a collective");
    expect(ended, communicator, "enqueueing a collective");
    while (state_of(rank, "enqueueing a collective") == ncclInProgress) {
      expect_going(rank);
      std::this_thread::yield();
    }
  }

  /// ncclSuccess or ncclInProgress. Throws DeviceLost for anything else: such a communicator is beyond repair.
  [[nodiscard]] ncclResult_t state_of(int rank, const char* what) {
    ncclComm_t communicator = ranks_[size(rank)].communicator;
    ncclResult_t state = ncclSuccess;
    expect(nccl_.comm_get_async_error(communicator, &state), communicator, "asking for a communicator's state");
    if (state != ncclSuccess && state != ncclInProgress) {
      const std::string text = words(state, communicator, what);
      give_up(rank);
      throw DeviceLost(text);
    }
    return state;
  }

  void expect(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    if (result != ncclSuccess && result != ncclInProgress) throw BackendError(words(result, communicator, what));
  }

  [[nodiscard]] std::string words(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    return fmt::format("cuda: NCCL: {} failed: {} ({}): {}", what, nccl_.get_error_string(result),
                       static_cast<int>(result), nccl_.get_last_error(communicator));
  }

  const NcclCalls& nccl_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                         double deadline_s) {
  return std::make_unique<NcclCommunicator>(calls, std::move(devices), deadline_s);
}

}  // namespace gpubench::cuda

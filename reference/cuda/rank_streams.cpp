#include "reference/cuda/cuda_communicator.h"

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"

namespace gpubench::cuda {
namespace {

class RankStreams final : public RankQueues {
 public:
  RankStreams(CudaCommunicator& communicator, int rank, cudaStream_t compute)
      : communicator_(communicator),
        rank_(rank),
        compute_(compute),
        communication_(communicator.stream(rank)),
        computed_(make_order_event()),
        begin_(make_event()),
        end_(make_event()) {}

  void enqueue(const RankProgram& program, const At& at) override {
    if (program.compute.empty() || program.communication.empty()) {
      for (const LaneStep& step : program.compute) compute(step, at);
      for (const LaneStep& step : program.communication) communicate(step, compute_, at);
      return;
    }
    enqueue_both(program, at);
  }

  void begin() override {
    communicator_.gate().close(rank_, compute_);
    enqueued_ = 0;
    communicator_.align(rank_, compute_);
    check(cudaEventRecord(begin_.get(), compute_), "recording an event");
  }

  [[nodiscard]] double end() override {
    check(cudaEventRecord(end_.get(), compute_), "recording an event");
    communicator_.gate().arrive(rank_);
    communicator_.wait(rank_, compute_);
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "reading the time between two events");
    return static_cast<double>(ms) * 1e6;
  }

 private:
  // In an order in which every step comes after those that it waits for, collectives as early as they can: on all ranks
  // alike, since all have the same lanes of collectives.
  void enqueue_both(const RankProgram& program, const At& at) {
    while (communicated_.size() < program.communication.size()) communicated_.push_back(make_order_event());
    communication_waits_for_compute();  // for the run before
    std::size_t computed = 0;
    std::size_t communicated = 0;
    std::uint64_t compute_waited = 0;
    std::uint64_t communication_waited = 0;
    while (computed < program.compute.size() || communicated < program.communication.size()) {
      if (communicated < program.communication.size() && program.communication[communicated].waits_for <= computed) {
        const LaneStep& step = program.communication[communicated];
        if (step.waits_for > communication_waited) {
          communication_waits_for_compute();
          communication_waited = computed;
        }
        communicate(step, communication_, at);
        check(cudaEventRecord(communicated_[communicated].get(), communication_), "recording an event");
        ++communicated;
      } else if (computed < program.compute.size() && program.compute[computed].waits_for <= communicated) {
        const LaneStep& step = program.compute[computed];
        if (step.waits_for > compute_waited) {
          compute_waits_for(step.waits_for - 1);
          compute_waited = step.waits_for;
        }
        compute(step, at);
        ++computed;
      } else {
        throw BackendError("cuda: the lanes of a rank wait for each other; expected steps in the order of a program");
      }
    }
    compute_waits_for(communicated - 1);
  }

  void compute(const LaneStep& step, const At& at) {
    at(*step.label);
    own_launch(*step.work).enqueue(compute_);
    count();
  }
  void communicate(const LaneStep& step, cudaStream_t stream, const At& at) {
    at(*step.label);
    communicator_.enqueue(*step.work, rank_, stream);
    count();
  }
  // Longer intervals begin while they are enqueued; the device has enough to do by then.
  void count() {
    if (++enqueued_ == StartGate::most_waiting) communicator_.gate().arrive(rank_);
  }
  void communication_waits_for_compute() {
    check(cudaEventRecord(computed_.get(), compute_), "recording an event");
    check(cudaStreamWaitEvent(communication_, computed_.get(), 0), "waiting for a stream");
  }
  void compute_waits_for(std::size_t collective) {
    check(cudaStreamWaitEvent(compute_, communicated_[collective].get(), 0), "waiting for a stream");
  }

  CudaCommunicator& communicator_;
  int rank_;
  cudaStream_t compute_;
  cudaStream_t communication_;
  int enqueued_ = 0;  // since the interval began
  Event computed_;
  std::vector<Event> communicated_;  // after each collective of a program
  Event begin_;
  Event end_;
};

}  // namespace

std::unique_ptr<RankQueues> open_rank_streams(CudaCommunicator& communicator, int rank, cudaStream_t compute) {
  return std::make_unique<RankStreams>(communicator, rank, compute);
}

}  // namespace gpubench::cuda

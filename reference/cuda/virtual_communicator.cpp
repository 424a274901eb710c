// A stream cannot wait for an event that no one has recorded yet, so the ranks' threads meet before each waits for the
// others' events; the events then keep the streams apart. A collective is two such meetings with work in between:
// nobody reads before all inputs are there, and nobody goes on before all have read. No meeting waits for the device.
#include "reference/cuda/virtual_communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/rank_sync.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/move.h"
#include "reference/cuda/kernels/reduce_ranks.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/shared_memory_collective.h"

namespace gpubench::cuda {
namespace {

constexpr int barrier_spins = 20000;  // some 0.2 ms

RankReduction reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return RankReduction::sum;
    case Reduction::average: return RankReduction::average;
    case Reduction::maximum: return RankReduction::maximum;
  }
  throw BackendError("cuda: a reduction that is not known");
}

/// What one rank launches.
struct RankLaunches {
  std::vector<ReduceRanksArgs> reductions;
  std::vector<MoveArgs> moves;
};

RankLaunches launches_of(const RankTasks& tasks) {
  RankLaunches launches;
  for (const ReduceTask& task : tasks.reductions) {
    ReduceRanksArgs args;
    args.type = element_of(task.type).value();
    args.reduction = reduction_of(task.reduction);
    args.ranks = static_cast<int>(task.from.size());
    args.targets = static_cast<int>(task.to.size());
    args.count = task.count;
    std::copy(task.from.begin(), task.from.end(), args.from);
    std::copy(task.to.begin(), task.to.end(), args.to);
    launches.reductions.push_back(args);
  }
  for (const CopyTask& task : tasks.copies) {
    MoveArgs args;
    args.element_bytes = 1;
    args.from = task.from;
    args.to = task.to;
    args.axes = 1;
    args.axis[0] = {task.bytes, 1, 1};
    launches.moves.push_back(args);
  }
  return launches;
}

class VirtualLaunch final : public LaunchImpl {
 public:
  explicit VirtualLaunch(std::vector<RankLaunches> ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] const RankLaunches& of(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }

 private:
  std::vector<RankLaunches> ranks_;
};

class VirtualCommunicator final : public CudaCommunicator {
 public:
  VirtualCommunicator(int ranks, int ordinal)
      : CudaCommunicator(std::vector<int>(static_cast<std::size_t>(ranks), ordinal)), barrier_(ranks, barrier_spins) {
    for (int rank = 0; rank < ranks; ++rank) {
      ready_.push_back(make_order_event());
      read_.push_back(make_order_event());
    }
  }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    expect_collective(call, tensors);
    for (const TensorSpec& tensor : tensors) {
      if (reduces(call.kind)) (void)any_element(call, tensor);
    }
    return std::make_shared<CollectivePlan>(call, "gpubench:virtual");
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    std::vector<RankLaunches> ranks;
    for (const RankTasks& tasks : tasks_of(collective_of(plan), tensors)) ranks.push_back(launches_of(tasks));
    return std::make_shared<VirtualLaunch>(std::move(ranks));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    const RankLaunches& own = dynamic_cast<const VirtualLaunch&>(*launch).of(rank);
    meet(ready_, rank, stream);
    for (const ReduceRanksArgs& args : own.reductions) launch_reduce_ranks(args, stream);
    for (const MoveArgs& args : own.moves) launch_move(args, stream);
    check_launch("a collective of virtual ranks");
    meet(read_, rank, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    meet(ready_, rank, stream);
    barrier_.arrive(rank);  // an event may be recorded anew only once all have been told to wait for it
  }

  void stop() override {
    CudaCommunicator::stop();
    barrier_.stop();
  }
  [[nodiscard]] bool restart() override {
    barrier_.reset();
    return CudaCommunicator::restart();
  }
  [[nodiscard]] std::vector<int> waiting() const override {
    std::vector<int> ranks = CudaCommunicator::waiting();
    for (const int rank : barrier_.waiting()) ranks.push_back(rank);
    return ranks;
  }

 protected:
  void poll(int /*rank*/) override {}  // the stream itself tells all there is
  void give_up(int /*rank*/) override {}

 private:
  /// What is enqueued from now on waits for what every rank's stream has on it when its thread comes here.
  void meet(const std::vector<Event>& events, int rank, cudaStream_t stream) {
    check(cudaEventRecord(events[static_cast<std::size_t>(rank)].get(), stream), "recording an event");
    barrier_.arrive(rank);
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer == rank) continue;
      check(cudaStreamWaitEvent(stream, events[static_cast<std::size_t>(peer)].get(), 0), "waiting for a rank");
    }
  }

  RankBarrier barrier_;
  std::vector<Event> ready_;  // inputs are there
  std::vector<Event> read_;   // and have been read
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_virtual_communicator(int ranks, int ordinal) {
  if (ranks < 1 || ranks > most_virtual_ranks)
    throw BackendError(fmt::format("cuda: {} virtual ranks; expected 1 to {}", ranks, most_virtual_ranks));
  return std::make_unique<VirtualCommunicator>(ranks, ordinal);
}

}  // namespace gpubench::cuda

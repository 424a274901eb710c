// A stream can only wait for an event that has been recorded, so the ranks' threads meet first; the events then order
// the streams. A collective is two such meetings: one before it reads the inputs, one after all ranks have read. No
// meeting waits for the device.
#include "reference/cuda/cuda_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"
#include "reference/cuda/kernels/virtual_ranks.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::cuda {
namespace {

constexpr int barrier_spins = 20000;  // about 0.2 ms

RankReduction reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return RankReduction::sum;
    case Reduction::average: return RankReduction::average;
    case Reduction::maximum: return RankReduction::maximum;
  }
  throw BackendError("cuda: unknown reduction");
}

struct RankLaunches {
  std::vector<ReduceRanksArgs> reductions;
  std::vector<MoveArgs> moves;
  std::optional<TokenExchangeArgs> exchange;
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

std::vector<RankLaunches> launches_of_exchange(const OpCall& call, std::span<const Tensor> tensors) {
  const std::size_t inputs = call.inputs.size();
  TokenExchangeArgs args;
  args.ranks = ranks_of(call);
  std::vector<ExchangeOperands> of_members;
  for (int member = 0; member < args.ranks; ++member) {
    of_members.push_back(exchange_operands(call, tensors.first(inputs), tensors.subspan(inputs), member));
    args.from[member] = of_members.back().rows.data;
    args.sizes[member] = reinterpret_cast<const int*>(of_members.back().sizes.data);
  }
  std::vector<RankLaunches> members;
  for (const ExchangeOperands& own : of_members) {
    args.dispatches = own.dispatches;
    args.experts = static_cast<int>(own.sizes.spec.shape[0]);
    args.rows = static_cast<int>(own.own_rows);
    args.row_bytes = own.row_bytes;
    args.to = own.result.data;
    args.own_sizes = reinterpret_cast<int*>(own.own_sizes.data);
    members.push_back({{}, {}, args});
    ++args.member;
  }
  return members;
}

/// Meeting point of a group's members, with separate events. An event may be recorded again only after all waits for
/// the last recording are enqueued, which the group's next meeting ensures.
struct MeetingPoint {
  explicit MeetingPoint(RankGroup who) : members(std::move(who)), barrier(members.size(), barrier_spins) {
    for (int member = 0; member < members.size(); ++member) {
      ready.push_back(make_order_event());
      read.push_back(make_order_event());
    }
  }

  RankGroup members;
  RankBarrier barrier;
  std::vector<Event> ready;
  std::vector<Event> read;  // inputs have been read
};

class VirtualLaunch final : public LaunchImpl {
 public:
  VirtualLaunch(MeetingPoint& where, std::vector<RankLaunches> members) : where_(where), members_(std::move(members)) {}
  [[nodiscard]] MeetingPoint& where() const { return where_; }
  [[nodiscard]] const RankLaunches& of(int member) const { return members_.at(static_cast<std::size_t>(member)); }

 private:
  MeetingPoint& where_;
  std::vector<RankLaunches> members_;
};

class VirtualCommunicator final : public CudaCommunicator {
 public:
  VirtualCommunicator(int ranks, int ordinal)
      : CudaCommunicator(RankGroup::first(ranks), std::vector<int>(static_cast<std::size_t>(ranks), ordinal)),
        all_(points_.of(RankGroup::first(ranks))) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    expect_collective(call, tensors);
    for (const TensorSpec& tensor : tensors) {
      if (reduces(call.kind)) (void)any_element(call, tensor);
    }
    if (exchanges_tokens(call.kind)) expect_countable(call, tensors);
    return std::make_shared<CollectivePlan>(call, "gpubench:virtual");
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const OpCall& call = collective_of(plan);
    std::vector<RankLaunches> members;
    if (exchanges_tokens(call.kind)) {
      members = launches_of_exchange(call, tensors);
    } else {
      for (const RankTasks& tasks : tasks_of(call, tensors)) members.push_back(launches_of(tasks));
    }
    return std::make_shared<VirtualLaunch>(points_.of(call.group), std::move(members));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    const auto& collective = dynamic_cast<const VirtualLaunch&>(*launch);
    MeetingPoint& where = collective.where();
    const int member = where.members.position(rank).value();
    const RankLaunches& own = collective.of(member);
    meet(where, where.ready, member, stream);
    for (const ReduceRanksArgs& args : own.reductions) launch_reduce_ranks(args, stream);
    for (const MoveArgs& args : own.moves) launch_move(args, stream);
    if (own.exchange) launch_token_exchange(*own.exchange, stream);
    check_launch("a collective of virtual ranks");
    meet(where, where.read, member, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    meet(all_, all_.ready, rank, stream);
    all_.barrier.arrive(rank);  // all waits must be enqueued before an event is recorded again
  }

  void stop() override {
    CudaCommunicator::stop();
    points_.stop();
  }
  [[nodiscard]] bool restart() override {
    points_.for_each([](MeetingPoint& point) { point.barrier.reset(); });
    return CudaCommunicator::restart();
  }
  [[nodiscard]] std::vector<int> waiting() const override {
    std::vector<int> ranks = CudaCommunicator::waiting();
    const std::vector<int> meeting = points_.waiting();
    ranks.insert(ranks.end(), meeting.begin(), meeting.end());
    return ranks;
  }

 protected:
  void poll(int /*rank*/) override {}  // the stream reports all errors
  void give_up(int /*rank*/) override {}

 private:
  static void expect_countable(const OpCall& call, std::span<const TensorSpec> tensors) {
    const std::int64_t rows = tensors[0].shape[0], experts = tensors[1].shape[0];
    if (rows > std::numeric_limits<int>::max() || (experts + 1) * ranks_of(call) > max_exchange_counts)
      refuse(call, fmt::format("{} rows for {} experts; expected fewer", rows, experts));
  }
  /// Later work on the stream waits for what is now on every member's stream.
  static void meet(MeetingPoint& where, const std::vector<Event>& events, int member, cudaStream_t stream) {
    check(cudaEventRecord(events[static_cast<std::size_t>(member)].get(), stream), "recording an event");
    where.barrier.arrive(member);
    for (int peer = 0; peer < where.members.size(); ++peer) {
      if (peer == member) continue;
      check(cudaStreamWaitEvent(stream, events[static_cast<std::size_t>(peer)].get(), 0), "waiting for a rank");
    }
  }

  MeetingPoints<MeetingPoint> points_;
  MeetingPoint& all_;
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_virtual_communicator(int ranks, int ordinal) {
  if (ranks < 1 || ranks > max_virtual_ranks)
    throw BackendError(fmt::format("cuda: {} virtual ranks; expected from 1 to {}", ranks, max_virtual_ranks));
  return std::make_unique<VirtualCommunicator>(ranks, ordinal);
}

}  // namespace gpubench::cuda

// Ranks of one process access each other's tensors. A collective is two barriers of its group with work in between: the
// first waits for all inputs, the second until all have read.
//
// A small reduction needs only the first: each rank copies its input to a place that is kept for two collectives, and
// sums all of them itself.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/communicator.h"
#include "harness/core/error.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::cpu {

// A rank's part of a collective: reads its peers' tensors in place, and writes part of the results, also its peers'.
struct RankWork {
  RankTasks tasks;
  bool streaming = false;  ///< results are streamed
};
namespace {

/// Worth a thread, and whole cache lines of every type.
constexpr std::int64_t copy_grain_bytes = 64 << 10;
constexpr std::int64_t reduce_grain = 16 << 10;

/// Partial results in the type of the reduction.
template <class T>
using Reduced = std::array<T, block_elements>;

void reduce_in_order(const ReduceTask& task, std::int64_t first, std::int64_t count, Reduced<double>& result) {
  const auto of = [&](std::size_t peer) { return reinterpret_cast<const double*>(task.from[peer]) + first; };
  std::copy_n(of(0), count, result.begin());
  for (std::size_t peer = 1; peer < task.from.size(); ++peer) {
    const double* x = of(peer);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const double largest = x[i] > result[i] || x[i] != x[i] ? x[i] : result[i];  // keeps NaN
      result[i] = task.reduction == Reduction::maximum ? largest : result[i] + x[i];
    }
  }
  const auto ranks = static_cast<double>(task.from.size());
  if (task.reduction == Reduction::average)
    std::for_each_n(result.begin(), count, [ranks](double& value) { value /= ranks; });
}

// In f32, in rank order. Two ranks at a time, so that a core waits for both loads at once: on two cores and 64 MiB, 0.9
// of a copy's bandwidth, compared with 0.64 for one at a time.
void reduce_in_order(const ReduceTask& task, std::int64_t first, std::int64_t count, Reduced<float>& sum) {
  const auto size = static_cast<std::int64_t>(size_of(task.type));
  BlockBuffer widened[2];
  const auto read = [&](std::size_t peer) -> const float* {
    const std::byte* from = task.from[peer] + first * size;
    if (task.type == DType::f32) return reinterpret_cast<const float*>(from);
    float* const to = widened[peer % 2].values.data();
    widen_elements(task.type, from, count, to);
    return to;
  };
  const std::size_t peers = task.from.size();
  std::size_t peer = 0;
  if (task.reduction == Reduction::maximum || peers == 1) {
    std::memcpy(sum.data(), read(peer++), static_cast<std::size_t>(count) * sizeof(float));
    for (; peer < peers; ++peer) runs().keep_larger(read(peer), count, sum.data());
  } else {
    runs().blend(read(0), 1.0F, read(1), 1.0F, count, sum.data());
    for (peer = 2; peer + 1 < peers; peer += 2) runs().add_two(read(peer), read(peer + 1), count, sum.data());
    if (peer < peers) runs().add(read(peer), count, sum.data());
  }
  if (task.reduction == Reduction::average) runs().divide(static_cast<float>(task.from.size()), count, sum.data());
}

// Reduces at most block_elements, rounded once: all targets get the same bits.
template <class T>
void reduce_block(const ReduceTask& task, bool streaming, std::int64_t first, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(size_of(task.type));
  alignas(64) Reduced<T> reduced;
  reduce_in_order(task, first, count, reduced);
  alignas(64) std::array<std::byte, block_elements * sizeof(bf16)> narrowed;
  const auto* result = reinterpret_cast<const std::byte*>(reduced.data());
  if constexpr (std::is_same_v<T, float>) {
    if (task.type != DType::f32) {
      narrow_elements(task.type, reduced.data(), count, narrowed.data());
      result = narrowed.data();
    }
  }
  for (std::byte* target : task.to) move_bytes(target + first * size, result, count * size, streaming);
}

void run_reduction(const ReduceTask& task, bool streaming, int threads) {
  const auto reduce = task.type == DType::f64 ? reduce_block<double> : reduce_block<float>;
  parallel_chunks(threads, task.count, reduce_grain, [&](std::int64_t begin, std::int64_t end) {
    in_blocks(end - begin, block_elements,
              [&](std::int64_t i, std::int64_t count) { reduce(task, streaming, begin + i, count); });
    stream_fence();
  });
}

void run_copy(const CopyTask& task, bool streaming, int threads) {
  parallel_chunks(threads, task.bytes, copy_grain_bytes, [&](std::int64_t begin, std::int64_t end) {
    move_bytes(task.to + begin, task.from + begin, end - begin, streaming);
    stream_fence();
  });
}

}  // namespace

void expect_supported(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (!is_collective(call.kind)) refuse(call, "its tensors are on several ranks; expected one rank, or a collective");
  for (const TensorSpec& tensor : tensors) {
    expect_row_major(call, tensor);
    const bool adds = tensor.dtype == DType::f64 || tensor.dtype == DType::f32 || narrows_from_f32(tensor.dtype);
    if (reduces(call.kind) && !adds)
      refuse(call, "reductions of " + std::string(name(tensor.dtype)) + "; expected f64, f32, f16 or bf16");
  }
}

std::vector<RankWork> work_of(const OpCall& call, std::span<const Tensor> tensors) {
  std::int64_t written = 0;
  for (const Tensor& y : tensors.subspan(call.inputs.size())) written += y.spec.bytes();
  const bool streaming = should_stream(written);
  std::vector<RankWork> work;
  for (RankTasks& tasks : tasks_of(call, tensors)) work.push_back({std::move(tasks), streaming});
  return work;
}

void run_exchange(const ExchangeTasks& tasks, int threads) {
  std::int64_t bytes = 0;
  for (const CopyTask& copy : tasks.copies) bytes += copy.bytes;
  const bool streaming = should_stream(bytes);
  for (const CopyTask& copy : tasks.copies) run_copy(copy, streaming, threads);
  parallel_chunks(threads, static_cast<std::int64_t>(tasks.cleared.size()), copy_grain_bytes,
                  [&](std::int64_t begin, std::int64_t end) {
                    std::memset(tasks.cleared.data() + begin, 0, static_cast<std::size_t>(end - begin));
                  });
}

void run_work(const RankWork& work, int threads) {
  for (const ReduceTask& task : work.tasks.reductions) run_reduction(task, work.streaming, threads);
  for (const CopyTask& task : work.tasks.copies) run_copy(task, work.streaming, threads);
}

}  // namespace gpubench::cpu

namespace gpubench {
namespace {

constexpr std::int64_t small_bytes = 4096;
constexpr int spins = 20000;  // about 0.2 ms, then sleeps

class CollectivePlan : public PlanImpl {
 public:
  explicit CollectivePlan(OpCall call) : call_(std::move(call)) {}
  [[nodiscard]] std::string implementation() const override { return "gpubench:shared_memory"; }
  [[nodiscard]] const OpCall& call() const { return call_; }

 private:
  OpCall call_;
};

/// Exchange of tokens' rows, with destinations given by sizes at run time.
struct Exchange {
  OpCall call;
  std::vector<Tensor> tensors;
};

struct MeetingPoint {
  struct Place {
    alignas(64) std::array<std::array<std::byte, small_bytes>, 2> bytes;
    std::uint64_t turns = 0;
  };

  MeetingPoint(RankGroup who, int spinning)
      : members(std::move(who)), barrier(members.size(), spinning), places(static_cast<std::size_t>(members.size())) {}

  RankGroup members;
  RankBarrier barrier;
  std::vector<Place> places;
};

/// A member's small all_reduce: its input, and sums over the places of even and odd turns.
struct SmallSum {
  const std::byte* input = nullptr;
  std::size_t bytes = 0;
  std::array<cpu::RankWork, 2> of_turn;
};

class CollectiveLaunch : public LaunchImpl {
 public:
  struct Member {
    MeetingPoint* where = nullptr;  ///< of ranks that access each other's tensors
    cpu::RankWork work;
    std::optional<SmallSum> small = {};
    std::shared_ptr<const Exchange> exchange = {};
  };
  CollectiveLaunch(RankGroup group, std::vector<Member> members)
      : group_(std::move(group)), members_(std::move(members)) {}
  [[nodiscard]] const Member& of(int rank) const {
    return members_[static_cast<std::size_t>(group_.position(rank).value())];
  }

 private:
  RankGroup group_;
  std::vector<Member> members_;
};

class CpuCommunicator final : public Communicator {
 public:
  CpuCommunicator(int threads, bool oversubscribed) : threads_(threads), spins_(oversubscribed ? 0 : spins) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    cpu::expect_supported(call, tensors);
    return std::make_shared<CollectivePlan>(call);
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const auto* own = dynamic_cast<const CollectivePlan*>(plan.get());
    if (own == nullptr) throw BackendError("cpu: the plan is empty or of another backend; expected a collective's");
    const OpCall& call = own->call();
    std::vector<CollectiveLaunch::Member> members;
    for (cpu::RankWork& work : cpu::work_of(call, tensors))
      members.push_back({&points_.of(meeting_group(call, static_cast<int>(members.size())), spins_), std::move(work)});
    add_small_sums(members, call, tensors);
    if (exchanges_tokens(call.kind)) {
      const auto exchange = std::make_shared<const Exchange>(Exchange{call, {tensors.begin(), tensors.end()}});
      for (CollectiveLaunch::Member& member : members) member.exchange = exchange;
    }
    return std::make_shared<CollectiveLaunch>(call.group, std::move(members));
  }

  void run(const Launch& launch, int rank) override {
    const CollectiveLaunch::Member& own = dynamic_cast<const CollectiveLaunch&>(*launch).of(rank);
    const int place = own.where->members.position(rank).value();
    if (own.small) return run_small(*own.small, *own.where, place);
    own.where->barrier.arrive(place);
    if (own.exchange) {
      cpu::run_exchange(exchange_tasks(own.exchange->call, own.exchange->tensors, place), threads_);
    } else {
      cpu::run_work(own.work, threads_);
    }
    own.where->barrier.arrive(place);
  }

  void stop() override { points_.stop(); }
  [[nodiscard]] bool restart() override {
    points_.for_each([](MeetingPoint& point) {
      point.barrier.reset();
      for (MeetingPoint::Place& place : point.places) place.turns = 0;
    });
    return true;
  }
  [[nodiscard]] std::vector<int> waiting() const override { return points_.waiting(); }

 private:
  /// Pairs do not wait for other pairs, so that a link's time is separate.
  static RankGroup meeting_group(const OpCall& call, int member) {
    if (call.kind != send_recv_kind || call.attributes.as<SendRecv>().round == 0) return call.group;
    const int other = call.attributes.as<SendRecv>().receiver(member);
    if (other == member) return RankGroup({call.group[member]});
    return RankGroup({call.group[std::min(member, other)], call.group[std::max(member, other)]});
  }

  static void add_small_sums(std::vector<CollectiveLaunch::Member>& members, const OpCall& call,
                             std::span<const Tensor> tensors) {
    if (call.kind != all_reduce_kind || call.inputs.size() != members.size()) return;
    if (tensors[0].spec.bytes() > small_bytes) return;
    for (std::size_t member = 0; member < members.size(); ++member) {
      SmallSum sum{tensors[member].data, static_cast<std::size_t>(tensors[member].spec.bytes()), {}};
      for (std::size_t turn = 0; turn < 2; ++turn) {
        ReduceTask task{tensors[member].spec.dtype,
                        call.attributes.as<AllReduce>().reduction,
                        {},
                        {tensors[member + members.size()].data},
                        tensors[member].spec.shape.elements()};
        for (const MeetingPoint::Place& peer : members[member].where->places)
          task.from.push_back(peer.bytes[turn].data());
        sum.of_turn[turn].tasks.reductions.push_back(std::move(task));
      }
      members[member].small = std::move(sum);
    }
  }

  static void run_small(const SmallSum& sum, MeetingPoint& where, int member) {
    MeetingPoint::Place& place = where.places[static_cast<std::size_t>(member)];
    const auto turn = static_cast<std::size_t>(place.turns++ % 2);
    std::memcpy(place.bytes[turn].data(), sum.input, sum.bytes);
    where.barrier.arrive(member);
    cpu::run_work(sum.of_turn[turn], 1);
  }

  int threads_;
  int spins_;
  MeetingPoints<MeetingPoint> points_;
};

}  // namespace

std::unique_ptr<Communicator> open_cpu_communicator(int threads, bool oversubscribed) {
  return std::make_unique<CpuCommunicator>(threads, oversubscribed);
}

}  // namespace gpubench

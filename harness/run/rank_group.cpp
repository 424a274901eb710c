#include "harness/run/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "harness/core/communicator.h"
#include "harness/core/error.h"

namespace gpubench {
namespace {

using Clock = std::chrono::steady_clock;
using State = RankThreads::State;
constexpr int barrier_spins = 20000;  // about 0.2 ms, so that ranks start a sample together

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Maps addresses to ranks; devices do not share addresses.
class RankMemory {
 public:
  void add(const Buffer& buffer, int rank) {
    const std::byte* end = buffer.data() + buffer.bytes();
    auto first = blocks_.lower_bound(buffer.data());
    while (first != blocks_.end() && first->first < end) first = blocks_.erase(first);
    blocks_[buffer.data()] = rank;
  }
  [[nodiscard]] int rank_of(const std::byte* address) const {
    const auto after = blocks_.upper_bound(address);
    return after == blocks_.begin() ? 0 : std::prev(after)->second;
  }

 private:
  std::map<const std::byte*, int> blocks_;
};

class RankGroupBackend final : public Backend {
 public:
  RankGroupBackend(RankSet set, double stall_limit_s, double plan_limit_s)
      : set_(std::move(set)),
        plan_limit_s_(plan_limit_s),
        ranks_(static_cast<int>(set_.backends.size())),
        line_up_(ranks_, set_.flags.empty() ? barrier_spins : 0),
        // Threads 0 ... n - 1 compute; if the host is the device, threads n ... 2n - 1 are the communication lanes.
        threads_(ranks_, set_.queues.empty() ? 2 : 1, stall_limit_s,
                 {[this](int rank) { set_.enter(rank); }, [this] { stop(); }, [this] { return restart(); },
                  [this] { return set_.communicator->waiting(); }}) {
    set_.device.properties.emplace_back("ranks", std::to_string(ranks_));
    for (int rank = 0; set_.queues.empty() && rank < ranks_; ++rank)
      lanes_.push_back(
          std::make_unique<HostLanes>(HostLanes::Hooks{[this, rank](const LaneStep& step) { compute(rank, step); },
                                                       [this, rank](const LaneStep& step) { communicate(rank, step); },
                                                       [this] { threads_.at(State::waiting, waiting_); }}));
  }

  [[nodiscard]] const DeviceInfo& device() const override { return set_.device; }
  [[nodiscard]] std::vector<std::string> flags() const override { return set_.flags; }
  [[nodiscard]] bool hangs() const override { return threads_.hangs(); }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return allocate_on(0, bytes); }
  [[nodiscard]] Buffer allocate_on(int rank, std::size_t bytes) override {
    const auto buffer = std::make_shared<Buffer>();
    on(rank, allocating_, [this, rank, bytes, buffer] { *buffer = child(rank).allocate(bytes); });
    memory_.add(*buffer, rank);
    return *buffer;
  }
  void write(std::byte* device, std::span<const std::byte> host) override { owner(device).write(device, host); }
  void read(std::span<std::byte> host, const std::byte* device) override { owner(device).read(host, device); }
  void read_runs(std::span<std::byte> host, std::span<const std::byte* const> from) override {
    if (from.empty()) return;
    const std::size_t bytes = host.size() / from.size();
    std::map<int, std::vector<std::size_t>> of_rank;
    for (std::size_t i = 0; i < from.size(); ++i) of_rank[memory_.rank_of(from[i])].push_back(i);
    for (const auto& [rank, runs] : of_rank) {
      std::vector<const std::byte*> own;
      for (const std::size_t run : runs) own.push_back(from[run]);
      std::vector<std::byte> read(bytes * runs.size());
      child(rank).read_runs(read, own);
      for (std::size_t i = 0; i < runs.size(); ++i)
        std::copy_n(read.begin() + static_cast<std::ptrdiff_t>(i * bytes), bytes,
                    host.begin() + static_cast<std::ptrdiff_t>(runs[i] * bytes));
    }
  }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    owner(device).fill(device, pattern, bytes);
  }
  [[nodiscard]] bool host_visible() const override { return set_.backends.front()->host_visible(); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    Backend& device = owner(to);
    &device == &owner(from) ? device.copy(to, from, bytes) : Backend::copy(to, from, bytes);
  }
  [[nodiscard]] bool examines_memory() const override { return set_.backends.front()->examines_memory(); }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    owner(device).gather(host, device, offsets);
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    owner(device).scan(chunks, device, type, rows);
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    return owner(device).fingerprint(device, bytes);
  }
  [[nodiscard]] bool keeps(const OpCall& call, std::span<const TensorSpec> tensors) override {
    return set_.backends.front()->keeps(call, tensors);
  }
  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return set_.backends.front()->fused_ops(); }

  // Ranks on equal devices share the compiled kernels.
  void announce_plans(std::span<const CallToPlan> calls, const std::function<void()>& alive) override {
    set_.backends.front()->announce_plans(calls, alive);
  }
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    const std::optional<int> rank = rank_of(call, tensors);
    if (!rank) {
      expect_members(call);
      return std::make_shared<GroupPlan>(set_.communicator->plan(call, tensors), RankOp{call.group, call.label});
    }
    const auto inner = std::make_shared<Plan>();
    // The caller's `alive` must be called on the caller's thread, which waits here.
    PlanOptions on_thread = options;
    on_thread.alive = [this, label = &call.label] { threads_.at(State::working, *label); };
    on(
        *rank, call.label,
        [this, rank = *rank, call, specs = std::vector<TensorSpec>(tensors.begin(), tensors.end()), on_thread, inner] {
          *inner = child(rank).plan(call, specs, on_thread);
        },
        plan_limit_s_);
    return std::make_shared<GroupPlan>(*inner, RankOp{RankGroup({*rank}), call.label});
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto* own = dynamic_cast<const GroupPlan*>(plan.get());
    if (own == nullptr)
      throw BackendError("the plan is empty or of another backend; expected one planned by these ranks");
    if (own->op.is_collective())
      return std::make_shared<GroupLaunch>(set_.communicator->bind(own->inner, tensors), own->op);
    const auto inner = std::make_shared<Launch>();
    on(own->op.members[0], own->op.label,
       [this, plan, own, bound = std::vector<Tensor>(tensors.begin(), tensors.end()), workspace, inner] {
         *inner = child(own->op.members[0]).bind(own->inner, bound, workspace);
       });
    return std::make_shared<GroupLaunch>(*inner, own->op);
  }

  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    if (schedule.mode == LaunchMode::graph)
      throw Unsupported("programs of several ranks are not recorded as graphs; expected --launch stream");
    return std::make_shared<GroupSequence>(std::vector<Launch>(launches.begin(), launches.end()),
                                           rank_programs(launches, schedule, ranks_));
  }

  void run(const Launch& launch) override {
    const auto* one = dynamic_cast<const GroupLaunch*>(launch.get());
    if (one == nullptr)
      return over_rounds(std::vector{launch},
                         [this](int rank, const auto& run_next) { (void)interval(rank, 1, run_next); });
    const RankOp& op = one->op;
    if (!op.is_collective())
      return on(op.members[0], op.label, [this, rank = op.members[0], inner = one->inner] { child(rank).run(inner); });
    threads_.on_all([this, launch, one, step = LaneStep{&one->inner, &op.label, 0}](int thread) {
      if (one->op.members.contains(thread)) communicate(thread, step);
    });
  }

  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    if (copies.empty() || plan.samples < 0 || plan.batch < 1) {
      throw BackendError(
          fmt::format("a round of {} samples of {} runs over {} copies; expected at least one run and copy",
                      plan.samples, plan.batch, copies.size()));
    }
    const auto round = std::make_shared<Round>();
    const auto intervals = static_cast<std::size_t>(plan.samples);
    round->plan = plan;
    round->ranks.assign(static_cast<std::size_t>(ranks_), RankTimes{std::vector<double>(intervals)});
    round->wall = round->ranks;
    over_rounds({copies.begin(), copies.end()},
                [this, round](int rank, const auto& run_next) { time_rank(rank, *round, run_next); });
    RoundTimes times;
    times.wall_ns = largest(round->wall, intervals);
    times.device_ns = set_.queues.empty() ? times.wall_ns : largest(round->ranks, intervals);
    times.ranks = std::move(round->ranks);
    times.runs = round->warmup_runs + plan.samples * plan.batch;
    return times;
  }

 private:
  void expect_members(const OpCall& call) const {
    for (const int rank : call.group.members()) {
      if (rank < ranks_ && call.held.contains(rank)) continue;
      throw Unsupported(
          fmt::format("'{}' is between ranks {}; this process holds {} ranks, and rank {} is not among them",
                      call.label, call.group.to_string(), ranks_, rank));
    }
  }
  [[nodiscard]] Backend& child(int rank) { return *set_.backends[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Backend& owner(const std::byte* address) { return child(memory_.rank_of(address)); }

  [[nodiscard]] static std::vector<double> largest(const std::vector<RankTimes>& ranks, std::size_t intervals) {
    std::vector<double> ns(intervals, 0.0);
    for (const RankTimes& rank : ranks) {
      for (std::size_t i = 0; i < intervals; ++i) ns[i] = std::max(ns[i], rank.ns[i]);
    }
    return ns;
  }

  void on(int rank, const std::string& what, std::function<void()> work, double stall_limit_s = 0.0) {
    threads_.on_one(
        rank,
        [this, what = &what, work = std::move(work)] {
          threads_.at(State::working, *what);
          work();
        },
        stall_limit_s);
  }

  /// State of a round. Ranks share its ownership, since a rank that hangs may access it later.
  struct Round {
    RoundPlan plan;
    std::vector<RankTimes> ranks;  // by the devices' clocks, if any
    std::vector<RankTimes> wall;
    std::array<std::atomic<bool>, 2> go_on{};
    std::atomic<int> warmup_runs{0};
    Clock::time_point start = Clock::now();
  };

  template <class RunNext>
  void time_rank(int rank, Round& round, const RunNext& run_next) {
    // Rank 0 decides how long all warm up. With two flags it cannot overwrite one before all have read it.
    for (int calls = 0;; ++calls) {
      std::atomic<bool>& word = round.go_on[static_cast<std::size_t>(calls % 2)];
      if (rank == 0) word = calls < round.plan.warmup_calls || ns_since(round.start) < 1e9 * round.plan.warmup_s;
      line_up(rank);
      if (!word) break;
      if (rank == 0) ++round.warmup_runs;
      (void)interval(rank, 1, run_next);
    }
    const auto at = static_cast<std::size_t>(rank);
    const bool isolated = round.plan.cadence == Cadence::isolated;
    for (std::size_t sample = 0; sample < round.wall[at].ns.size(); ++sample) {
      for (std::int64_t part = 0; part < (isolated ? round.plan.batch : 1); ++part) {
        line_up(rank);
        const Elapsed elapsed = interval(rank, isolated ? 1 : round.plan.batch, run_next);
        round.ranks[at].ns[sample] += elapsed.device_ns;
        round.wall[at].ns[sample] += elapsed.wall_ns;
      }
    }
  }

  struct Elapsed {
    double device_ns = 0.0;
    double wall_ns = 0.0;
  };

  /// `runs` runs on this rank, complete on return.
  template <class RunNext>
  [[nodiscard]] Elapsed interval(int rank, std::int64_t runs, const RunNext& run_next) {
    RankQueues* queues = queues_of(rank);
    const Clock::time_point begin = Clock::now();
    if (queues != nullptr) queues->begin();
    for (std::int64_t run = 0; run < runs; ++run) run_next();
    const std::optional<double> device_ns = queues == nullptr ? std::nullopt : std::optional(queues->end());
    const double wall_ns = device_ns && set_.timed_where_they_are ? *device_ns : ns_since(begin);
    return {device_ns.value_or(wall_ns), wall_ns};
  }

  [[nodiscard]] RankQueues* queues_of(int rank) {
    return set_.queues.empty() ? nullptr : set_.queues[static_cast<std::size_t>(rank)].get();
  }

  /// Calls loop(rank, run_next) on the thread of each rank; run_next() runs the next copy in rotation: to its end if
  /// the host is the device, else until it is in the device's queues.
  template <class Loop>
  void over_rounds(std::vector<Launch> copies, Loop loop) {
    using Programs = std::vector<std::vector<RankProgram>>;  // of each copy, of each rank
    const auto programs = std::make_shared<Programs>();
    for (const Launch& copy : copies) programs->push_back(programs_of(copy));
    for (const auto& one : lanes_) one->reset();
    threads_.on_all([this, programs, held = std::move(copies), loop](int thread) {
      const auto rank = static_cast<std::size_t>(thread % ranks_);
      if (thread >= ranks_) return lanes_[rank]->serve();
      RankQueues* queues = queues_of(thread);
      const RankQueues::At at = [this](const std::string& label) { threads_.at(State::working, label); };
      std::size_t next = 0;
      loop(thread, [&] {
        const RankProgram& program = (*programs)[next][rank];
        queues == nullptr ? lanes_[rank]->run(program) : queues->enqueue(program, at);
        next = next + 1 == programs->size() ? 0 : next + 1;
      });
      if (queues == nullptr) lanes_[rank]->finish();
    });
  }

  [[nodiscard]] std::vector<RankProgram> programs_of(const Launch& launch) const {
    const auto* sequence = dynamic_cast<const GroupSequence*>(launch.get());
    if (sequence == nullptr) return rank_programs(std::array{launch}, {{{}}, LaunchMode::stream}, ranks_);
    std::vector<RankProgram> programs;
    for (int rank = 0; rank < ranks_; ++rank) programs.push_back(sequence->of(rank));
    return programs;
  }

  void compute(int rank, const LaneStep& step) {
    threads_.at(State::working, *step.label);
    child(rank).run(*step.work);
  }

  void communicate(int rank, const LaneStep& step) {
    threads_.at(State::collective, *step.label);
    set_.communicator->run(*step.work, rank);
  }

  void stop() {
    set_.communicator->stop();
    line_up_.stop();
    for (const auto& one : lanes_) one->stop();
  }
  bool restart() {
    line_up_.reset();
    for (const auto& one : lanes_) one->reset();
    return set_.communicator->restart();
  }

  void line_up(int rank) {
    threads_.at(State::waiting, lining_up_);
    line_up_.arrive(rank);
  }

  inline static const std::string allocating_ = "allocating memory";
  inline static const std::string waiting_ = "waiting for its other lane";
  inline static const std::string lining_up_ = "waiting for all ranks to start";

  RankSet set_;
  double plan_limit_s_;
  int ranks_;
  std::vector<std::unique_ptr<HostLanes>> lanes_;  // empty if devices have queues
  RankMemory memory_;
  RankBarrier line_up_;
  RankThreads threads_;  // last: its threads use the members above
};

}  // namespace

std::unique_ptr<Backend> open_rank_group(RankSet ranks, double stall_limit_s, double plan_limit_s) {
  if (ranks.backends.empty() || ranks.communicator == nullptr)
    throw BackendError("a group of no ranks; expected at least one, and a communicator");
  return std::make_unique<RankGroupBackend>(std::move(ranks), stall_limit_s, plan_limit_s);
}

}  // namespace gpubench

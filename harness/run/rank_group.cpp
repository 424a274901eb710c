#include "harness/run/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "harness/core/error.h"
#include "harness/core/rank_sync.h"
#include "harness/run/rank_program.h"
#include "harness/run/rank_threads.h"

namespace gpubench {
namespace {

using Clock = std::chrono::steady_clock;
using State = RankThreads::State;
constexpr int barrier_spins = 20000;  // some 0.2 ms: ranks start a sample together

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// What the two lanes of one rank tell each other.
struct Lanes {
  Progress begun;     // runs that the compute lane has begun
  Progress computed;  // steps done in the present run and those before
  Progress communicated;
  std::atomic<const RankProgram*> program{nullptr};  // of the run that has begun; null: no more runs
  std::uint64_t computed_before = 0;                 // steps of all earlier runs
  std::uint64_t communicated_before = 0;

  void reset() {
    for (Progress* one : {&begun, &computed, &communicated}) one->reset();
    computed_before = communicated_before = 0;
  }
  void stop() {
    for (Progress* one : {&begun, &computed, &communicated}) one->stop();
  }
};

class RankGroup final : public Backend {
 public:
  RankGroup(RankSet set, double stall_limit_s)
      : set_(std::move(set)),
        ranks_(static_cast<int>(set_.backends.size())),
        lanes_(static_cast<std::size_t>(ranks_)),
        line_up_(ranks_, set_.flags.empty() ? barrier_spins : 0),
        device_(set_.backends.front()->device()),
        // Ranks 0 ... n - 1 compute; threads n ... 2n - 1 are their communication lanes.
        threads_(ranks_, 2, stall_limit_s,
                 {[this](int rank) { set_.enter(rank); }, [this] { stop(); }, [this] { restart(); },
                  [this] { return set_.communicator->waiting(); }}) {
    device_.units = set_.units;
    device_.properties.emplace_back("ranks", std::to_string(ranks_));
  }

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }
  [[nodiscard]] std::vector<std::string> flags() const override { return set_.flags; }
  [[nodiscard]] bool hangs() const override { return threads_.hangs(); }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return allocate_on(0, bytes); }
  [[nodiscard]] Buffer allocate_on(int rank, std::size_t bytes) override {
    const auto buffer = std::make_shared<Buffer>();
    on(rank, allocating_, [this, rank, bytes, buffer] { *buffer = child(rank).allocate(bytes); });
    return *buffer;
  }
  void write(std::byte* device, std::span<const std::byte> host) override { child(0).write(device, host); }
  void read(std::span<std::byte> host, const std::byte* device) override { child(0).read(host, device); }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    child(0).fill(device, pattern, bytes);
  }
  [[nodiscard]] bool host_visible() const override { return set_.backends.front()->host_visible(); }
  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return set_.backends.front()->fused_ops(); }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    const std::optional<int> rank = rank_of(tensors);
    if (!rank) return std::make_shared<GroupPlan>(set_.communicator->plan(call, tensors), -1, call.label);
    const auto inner = std::make_shared<Plan>();
    on(*rank, call.label,
       [this, rank = *rank, call, specs = std::vector<TensorSpec>(tensors.begin(), tensors.end()), inner] {
         *inner = child(rank).plan(call, specs);
       });
    return std::make_shared<GroupPlan>(*inner, *rank, call.label);
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto* own = dynamic_cast<const GroupPlan*>(plan.get());
    if (own == nullptr)
      throw BackendError("the plan is empty or of another backend; expected one planned by these ranks");
    if (own->rank() < 0) {
      Launch collective = set_.communicator->bind(own->inner(), tensors);
      return std::make_shared<GroupLaunch>(std::move(collective), -1, own->label());
    }
    const auto inner = std::make_shared<Launch>();
    on(own->rank(), own->label(),
       [this, plan, own, bound = std::vector<Tensor>(tensors.begin(), tensors.end()), workspace, inner] {
         *inner = child(own->rank()).bind(own->inner(), bound, workspace);
       });
    return std::make_shared<GroupLaunch>(*inner, own->rank(), own->label());
  }

  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    return std::make_shared<GroupSequence>(std::vector<Launch>(launches.begin(), launches.end()),
                                           rank_programs(launches, schedule, ranks_));
  }

  void run(const Launch& launch) override {
    if (const auto* one = dynamic_cast<const GroupLaunch*>(launch.get()); one != nullptr && !one->is_collective()) {
      return on(one->rank(), one->label(),
                [this, rank = one->rank(), inner = one->inner()] { child(rank).run(inner); });
    }
    over_rounds(std::vector{launch}, [](int, const auto& run_next) { run_next(); });
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
    over_rounds({copies.begin(), copies.end()},
                [this, round](int rank, const auto& run_next) { time_rank(rank, *round, run_next); });
    RoundTimes times;
    times.wall_ns.assign(intervals, 0.0);
    for (const RankTimes& rank : round->ranks) {
      for (std::size_t i = 0; i < intervals; ++i) times.wall_ns[i] = std::max(times.wall_ns[i], rank.ns[i]);
    }
    times.device_ns = times.wall_ns;
    times.ranks = std::move(round->ranks);
    return times;
  }

 private:
  [[nodiscard]] Backend& child(int rank) { return *set_.backends[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Lanes& lanes(int rank) { return lanes_[static_cast<std::size_t>(rank)]; }

  void on(int rank, const std::string& what, std::function<void()> work) {
    threads_.on_one(rank, [this, what = &what, work = std::move(work)] {
      threads_.at(State::working, *what);
      work();
    });
  }

  /// A round as its ranks see it. They hold it too: one that hangs must find it when it wakes.
  struct Round {
    RoundPlan plan;
    std::vector<RankTimes> ranks;
    std::array<std::atomic<bool>, 2> go_on{};
    Clock::time_point start = Clock::now();
  };

  template <class RunNext>
  void time_rank(int rank, Round& round, const RunNext& run_next) {
    // Rank 0 decides for all how long to warm up. Two places: nobody can miss a word before the next one but one.
    for (int calls = 0;; ++calls) {
      std::atomic<bool>& word = round.go_on[static_cast<std::size_t>(calls % 2)];
      if (rank == 0) word = calls < round.plan.warmup_calls || ns_since(round.start) < 1e9 * round.plan.warmup_s;
      line_up(rank);
      if (!word) break;
      run_next();
    }
    for (double& sample : round.ranks[static_cast<std::size_t>(rank)].ns)
      sample = time_sample(rank, round.plan, run_next);
  }

  template <class RunNext>
  [[nodiscard]] double time_sample(int rank, const RoundPlan& plan, const RunNext& run_next) {
    double ns = 0.0;
    if (plan.cadence == Cadence::isolated) {
      for (std::int64_t call = 0; call < plan.batch; ++call) {
        line_up(rank);
        const Clock::time_point begin = Clock::now();
        run_next();
        ns += ns_since(begin);
      }
      return ns;
    }
    line_up(rank);
    const Clock::time_point begin = Clock::now();
    for (std::int64_t call = 0; call < plan.batch; ++call) run_next();
    return ns_since(begin);
  }

  /// Calls loop(rank, run_next) on each compute lane; run_next() runs the next of the copies, going round, on this rank
  /// and its communication lane.
  template <class Loop>
  void over_rounds(std::vector<Launch> copies, Loop loop) {
    using Programs = std::vector<std::vector<RankProgram>>;  // of each copy, of each rank
    const auto programs = std::make_shared<Programs>();
    for (const Launch& copy : copies) programs->push_back(programs_of(copy));
    for (Lanes& one : lanes_) one.reset();
    threads_.on_all([this, programs, held = std::move(copies), loop](int thread) {
      if (thread >= ranks_) return communicate(thread - ranks_);
      std::size_t next = 0;
      loop(thread, [this, thread, &next, &programs] {
        compute(thread, (*programs)[next][static_cast<std::size_t>(thread)]);
        next = next + 1 == programs->size() ? 0 : next + 1;
      });
      lanes(thread).program.store(nullptr);
      lanes(thread).begun.advance();
    });
  }

  [[nodiscard]] std::vector<RankProgram> programs_of(const Launch& launch) const {
    const auto* sequence = dynamic_cast<const GroupSequence*>(launch.get());
    if (sequence == nullptr) return rank_programs(std::array{launch}, {{{}}, LaunchMode::stream}, ranks_);
    std::vector<RankProgram> programs;
    for (int rank = 0; rank < ranks_; ++rank) programs.push_back(sequence->of(rank));
    return programs;
  }

  // A run without steps in one of the lanes needs no second thread: the collectives of a lone one run right here.
  void compute(int rank, const RankProgram& program) {
    Lanes& own = lanes(rank);
    if (program.compute.empty()) {
      for (const LaneStep& step : program.communication) communicate(rank, step);
      return;
    }
    if (program.communication.empty()) {
      for (const LaneStep& step : program.compute) compute(rank, step);
      return;
    }
    own.program.store(&program);
    own.begun.advance();
    for (const LaneStep& step : program.compute) {
      if (step.waits_for > 0) await(own.communicated, own.communicated_before + step.waits_for);
      compute(rank, step);
      own.computed.advance();
    }
    own.communicated_before += program.communication.size();
    await(own.communicated, own.communicated_before);
  }

  // The communication lane: run after run, until there is none.
  void communicate(int rank) {
    Lanes& own = lanes(rank);
    for (std::uint64_t run = 1;; ++run) {
      await(own.begun, run);
      const RankProgram* program = own.program.load();
      if (program == nullptr) return;
      for (const LaneStep& step : program->communication) {
        if (step.waits_for > 0) await(own.computed, own.computed_before + step.waits_for);
        communicate(rank, step);
        own.communicated.advance();
      }
      own.computed_before += program->compute.size();
    }
  }

  void compute(int rank, const LaneStep& step) {
    threads_.at(State::working, step.work->label());
    child(rank).run(step.work->inner());
  }

  void communicate(int rank, const LaneStep& step) {
    threads_.at(State::collective, step.work->label());
    set_.communicator->run(step.work->inner(), rank);
  }

  void stop() {
    set_.communicator->stop();
    line_up_.stop();
    for (Lanes& one : lanes_) one.stop();
  }
  void restart() {
    set_.communicator->restart();
    line_up_.reset();
    for (Lanes& one : lanes_) one.reset();
  }

  /// Waits for this rank's other lane.
  void await(const Progress& progress, std::uint64_t goal) {
    threads_.at(State::waiting, waiting_);
    progress.wait_for(goal, 0);
  }
  /// Waits until all ranks are here.
  void line_up(int rank) {
    threads_.at(State::waiting, lining_up_);
    line_up_.arrive(rank);
  }

  inline static const std::string allocating_ = "allocating memory";
  inline static const std::string waiting_ = "waiting for its other lane";
  inline static const std::string lining_up_ = "waiting for all ranks to start";

  RankSet set_;
  int ranks_;
  std::vector<Lanes> lanes_;
  RankBarrier line_up_;
  DeviceInfo device_;
  RankThreads threads_;  // last: its threads use all of the above
};

}  // namespace

std::unique_ptr<Backend> open_rank_group(RankSet ranks, double stall_limit_s) {
  if (ranks.backends.empty() || ranks.communicator == nullptr)
    throw BackendError("a group of no ranks; expected at least one, and a communicator");
  return std::make_unique<RankGroup>(std::move(ranks), stall_limit_s);
}

}  // namespace gpubench

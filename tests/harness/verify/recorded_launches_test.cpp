// Launches are recorded, as CUDA graphs, only after their ops have run once: libraries load code when an op first runs,
// which a recording forbids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/run/forwarding_backend.h"
#include "harness/verify/determinism.h"
#include "harness/verify/learning.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/suites/workloads.h"

namespace gpubench::sim {
namespace {

class Recorder final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void run(const Launch& launch) override {
    ran_.insert(launch);
    ForwardingBackend::run(launch);
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    if (schedule.mode == LaunchMode::graph) ++recordings;
    for (const Launch& launch : launches) {
      if (schedule.mode == LaunchMode::graph && !ran_.contains(launch))
        throw BackendError("an op is recorded that has never run");
    }
    return ForwardingBackend::sequence(launches, schedule);
  }
  int recordings = 0;

 private:
  std::set<Launch> ran_;
};

PlannedCase small_step() {
  PlannedCase planned;
  planned.c = {"transformer",
               "gpt2_train_step",
               {{"b", 2}, {"s", 16}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 64}},
               "f32",
               {},
               1,
               "small",
               Tier::smoke,
               CacheMode::step};
  planned.c.launch = LaunchMode::graph;
  planned.workload = gpubench::testing::workload_named("transformer", "gpt2_train_step");
  return with_program(std::move(planned));
}

struct RecordedLaunches : ::testing::Test {
  SimBackend inner{parse_script("")};
  Recorder backend{inner, nullptr};
  const std::vector<PlannedCase> cases{small_step()};
};

TEST_F(RecordedLaunches, RanBeforeInRunsWithAnyCheckOrNone) {
  for (const CheckMode check : {CheckMode::off, CheckMode::sample, CheckMode::full}) {
    RunOptions options = smoke_options();
    options.check = check;
    Remembering seen;
    run_in_process(backend, cases, options, seen, seen.stop);
    EXPECT_EQ(seen.count(check == CheckMode::off ? Verdict::unverified : Verdict::pass), 1)
        << seen.records.begin()->second.reason;
  }
  EXPECT_GT(backend.recordings, 2);
}

TEST_F(RecordedLaunches, RanBeforeWhereTheirBitsAreCompared) {
  const DeterminismRecord record = DeterminismProbe(backend, smoke_options(), {3, true}).measure(cases.front());
  for (const Repetition& repetition : record.repetitions)
    EXPECT_NE(repetition.outcome, Sameness::differs) << repetition.text;
  EXPECT_GT(backend.recordings, 0);
}

TEST_F(RecordedLaunches, RanBeforeTheFirstStepOfLearning) {
  const ModelLearning model = learn(
      backend, cases, {}, {16, 3, false}, [](const std::string&) {}, StopFlag{0});
  EXPECT_EQ(model.verdict(), Verdict::pass) << model.recipes.front().reason;
  EXPECT_GT(backend.recordings, 0);
}

class ToldOfPlans final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void announce_plans(std::span<const CallToPlan> calls, const std::function<void()>& /*alive*/) override {
    told = calls.size();
    for (const CallToPlan& next : calls) labels.insert(next.call->label);
  }
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    EXPECT_TRUE(labels.contains(call.label)) << call.label;
    ++planned;
    return ForwardingBackend::plan(call, tensors, options);
  }
  std::set<std::string> labels;
  std::size_t told = 0, planned = 0;
};

TEST(WillPlan, TellsOfEveryOpBeforeTheFirstIsPlanned) {
  SimBackend inner{parse_script("")};
  ToldOfPlans backend(inner, nullptr);
  Remembering seen;
  run_in_process(backend, std::vector{small_step()}, smoke_options(), seen, seen.stop);
  EXPECT_GT(backend.told, 10U);
  EXPECT_EQ(backend.planned, backend.told);
}

}  // namespace
}  // namespace gpubench::sim

// Rounds that the device's sensors find invalid are repeated, then kept and flagged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

struct Seen {
  std::vector<double> rests;
  int open_rounds = 0;  ///< begun and not ended
  int rounds = 0;
  std::deque<std::vector<std::string>> errors{};  ///< of the driver, by call
};

/// Returns the script's readings round by round, then valid ones. Rests take no time.
class ScriptedTelemetry final : public Telemetry {
 public:
  ScriptedTelemetry(std::deque<RoundTelemetry> script, bool forever, Seen& seen)
      : script_(std::move(script)), forever_(forever), seen_(seen) {}
  void begin_round() override { ++seen_.open_rounds; }
  std::optional<RoundTelemetry> end_round() override {
    --seen_.open_rounds;
    ++seen_.rounds;
    if (script_.empty()) return RoundTelemetry{};
    RoundTelemetry next = script_.front();
    if (!forever_) script_.pop_front();
    return next;
  }
  std::vector<std::string> take_errors() override {
    if (seen_.errors.empty()) return {};
    std::vector<std::string> next = seen_.errors.front();
    seen_.errors.pop_front();
    return next;
  }
  [[nodiscard]] bool counts_energy() const override { return true; }
  void rest(double seconds) override { seen_.rests.push_back(seconds); }

 private:
  std::deque<RoundTelemetry> script_;
  bool forever_;
  Seen& seen_;
};

RoundTelemetry throttled() {
  RoundTelemetry telemetry;
  telemetry.reasons = {"hw_thermal_slowdown"};
  return telemetry;
}

RunOptions watched_by(std::deque<RoundTelemetry> script, bool forever, Seen& seen) {
  RunOptions options = sim::smoke_options();
  options.open_telemetry = [script = std::move(script), forever, &seen](const DeviceInfo& device) {
    EXPECT_EQ(device.kind, "sim");
    return std::make_unique<ScriptedTelemetry>(script, forever, seen);
  };
  return options;
}

/// The only case with a round that was rejected, or kept although invalid.
const CaseRecord* touched(const sim::Remembering& seen) {
  const CaseRecord* found = nullptr;
  for (const auto& [id, record] : seen.records) {
    for (const RoundRecord& round : record.rounds) {
      if (!round.telemetry || (round.telemetry->rejected == 0 && round.note.empty())) continue;
      EXPECT_TRUE(found == nullptr || found == &record);
      found = &record;
    }
  }
  return found;
}

TEST(Throttling, WithoutSensorsRoundsHaveNoTelemetry) {
  sim::InProcess run("");
  for (const auto& [id, record] : run.seen.records) {
    for (const RoundRecord& round : record.rounds) EXPECT_FALSE(round.telemetry.has_value());
  }
}

TEST(Throttling, AnInvalidRoundIsRunAgainAfterALongerAndLongerRest) {
  Seen seen;
  sim::InProcess run("", watched_by({throttled(), throttled()}, false, seen));
  EXPECT_THAT(seen.rests, ElementsAre(0.5, 2.0));
  EXPECT_EQ(run.seen.count(Verdict::pass), 6);
  const CaseRecord* record = touched(run.seen);
  ASSERT_NE(record, nullptr);
  ASSERT_EQ(record->rounds.size(), 3U);  // as for other cases of the tier: rejected rounds are not kept
  EXPECT_EQ(record->rounds[0].telemetry->rejected, 2);
  EXPECT_EQ(record->rounds[0].note, "");
  EXPECT_THAT(record->summary.flags, Not(Contains("throttled")));
  EXPECT_EQ(record->summary.rounds, 3);
}

TEST(Throttling, AfterThreeTimesTheRoundIsKeptAndTheCaseFlagged) {
  Seen seen;
  sim::InProcess run("", watched_by({throttled(), throttled(), throttled(), throttled()}, false, seen));
  EXPECT_THAT(seen.rests, ElementsAre(0.5, 2.0, 5.0));
  const CaseRecord* record = touched(run.seen);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->verdict, Verdict::pass);
  EXPECT_TRUE(record->rounds[0].valid);
  EXPECT_EQ(record->rounds[0].telemetry->rejected, 3);
  EXPECT_EQ(record->rounds[0].note, "kept although invalid: hw_thermal_slowdown");
  EXPECT_THAT(record->summary.flags, Contains("throttled"));
  EXPECT_EQ(record->summary.rounds, 3);
}

// 2.2 s of runs of 1000 ns are 2,200,000 runs; 8594 times 256 is the next multiple.
TEST(Energy, TheWindowHasAMultipleOfTheRunsThatBackendsJoin) {
  Seen seen;
  RunOptions options = watched_by({}, false, seen);
  options.energy = true;
  sim::InProcess run("clock=1000", options);
  std::int64_t longest = 0;
  for (const SimEvent& event : run.backend.events()) {
    if (event.what == SimEvent::What::time && event.labels == std::vector<std::string>{"first.gemm"})
      longest = std::max(longest, event.plan.batch);
  }
  EXPECT_EQ(longest, 8594 * 256);
}

TEST(Throttling, ADeviceThatStaysSlowCostsEachCaseItsRestsOnce) {
  Seen seen;
  sim::InProcess run("", watched_by({throttled()}, true, seen));
  EXPECT_EQ(seen.rests.size(), 6U * 3U);
  EXPECT_EQ(seen.rounds, 6 * (3 + 3));  // three rounds of six cases, and three rejected ones of each
  for (const auto& [id, record] : run.seen.records) {
    EXPECT_EQ(record.rounds.size(), 3U) << id;
    EXPECT_THAT(record.summary.flags, Contains("throttled")) << id;
    EXPECT_EQ(record.rounds[2].telemetry->rejected, 0) << id;
  }
}

// A clock that stands still: an estimate, a first round and its three repetitions, and five rounds that are kept at
// once: six is twice the preset's most rounds.
TEST(Throttling, ARoundWithoutTimesIsRunAgainThreeTimesAndFlagged) {
  Seen seen;
  sim::InProcess run("clock=0", watched_by({}, false, seen));
  const CaseRecord& first = run.seen.of("first");
  EXPECT_EQ(first.rounds.size(), 6U);
  EXPECT_THAT(first.summary.flags, Contains("invalid rounds"));
  EXPECT_EQ(first.verdict, Verdict::error);
  EXPECT_EQ(first.reason, "no valid round: a sample took no time: a clock is too coarse or broken");
  EXPECT_EQ(first.rounds[0].telemetry->rejected, 3);
  EXPECT_EQ(first.rounds[1].telemetry->rejected, 0);
  EXPECT_THAT(seen.rests, IsEmpty());  // a rest does not repair a clock
  EXPECT_EQ(std::count_if(run.backend.events().begin(), run.backend.events().end(),
                          [](const SimEvent& event) {
                            return event.what == SimEvent::What::time && event.labels.front() == "first.gemm";
                          }),
            2 + 4 + 5);
}

TEST(Throttling, ANewMemoryErrorIsRunAgainToo) {
  RoundTelemetry error;
  error.uncorrected_errors = 1;
  Seen seen;
  sim::InProcess run("", watched_by({error}, false, seen));
  EXPECT_THAT(seen.rests, ElementsAre(0.5));
}

TEST(Throttling, ARoundInWhichTheDriverReportsAnErrorIsRunAgain) {
  Seen seen;
  seen.errors = {{"Xid 94 (contained ECC error)"}};
  sim::InProcess run("", watched_by({}, false, seen));
  EXPECT_THAT(seen.rests, ElementsAre(0.5));
  EXPECT_EQ(run.seen.count(Verdict::pass), 6);
}

TEST(Throttling, ADeviceWhoseDriverReportsErrorsInEveryRoundIsFlagged) {
  Seen seen;
  seen.errors.assign(1000, {"Xid 94 (contained ECC error)"});
  sim::InProcess run("", watched_by({}, false, seen));
  const CaseRecord& record = run.seen.of("first");
  EXPECT_THAT(record.summary.flags, Contains("device errors"));
  EXPECT_EQ(record.rounds.front().note, "kept although invalid: Xid 94 (contained ECC error)");
}

TEST(Throttling, AFaultNamesWhatTheDriverReportsBesideIt) {
  Seen seen;
  seen.errors = {{"Xid 31 (GPU memory page fault)", "Xid 45 (preemptive cleanup)"}};
  sim::InProcess run("lost@first.gemm", watched_by({}, false, seen));
  EXPECT_EQ(run.seen.of("first").reason,
            "sim: illegal address; the driver reports Xid 31 (GPU memory page fault), Xid 45 (preemptive cleanup) (in "
            "phase 'check')");
}

TEST(Throttling, ARoundAtAnotherClockThanTheLockedOneIsRunAgain) {
  RoundTelemetry slow, steady;
  slow.sm_mhz = Spread{1300, 1400, 1500};
  steady.sm_mhz = Spread{1490, 1500, 1500};
  Seen seen;
  RunOptions options = watched_by({slow, steady}, false, seen);
  options.locked_clock_mhz = 1500;
  sim::InProcess run("", options);
  EXPECT_THAT(seen.rests, ElementsAre(0.5));
  const CaseRecord* record = touched(run.seen);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->rounds[0].telemetry->rejected, 1);
  EXPECT_EQ(record->rounds[0].telemetry->sm_mhz->median, 1500.0);
  EXPECT_THAT(record->summary.flags, Not(Contains("clock off")));
}

TEST(Throttling, AClockThatStaysOffIsKeptAndFlagged) {
  RoundTelemetry slow;
  slow.sm_mhz = Spread{1300, 1400, 1500};
  Seen seen;
  RunOptions options = watched_by({slow}, true, seen);
  options.locked_clock_mhz = 1500;
  sim::InProcess run("", options);
  const CaseRecord& first = run.seen.of("first");
  EXPECT_EQ(first.verdict, Verdict::pass);
  EXPECT_EQ(first.rounds[0].note, "kept although invalid: SM clock at 1400 MHz, locked at 1500");
  EXPECT_THAT(first.summary.flags, Contains("clock off"));
}

TEST(Throttling, APowerCapInSoftwareStands) {
  RoundTelemetry capped;
  capped.reasons = {"sw_power_cap"};
  Seen seen;
  sim::InProcess run("", watched_by({capped}, true, seen));
  EXPECT_THAT(seen.rests, IsEmpty());
  EXPECT_THAT(run.seen.of("first").summary.flags, Contains("power capped"));
}

TEST(Throttling, EnergyPerRunComesFromLongRounds) {
  RoundTelemetry hungry;
  hungry.window_s = 4.0;
  hungry.energy_j = 2000.0;
  Seen seen;
  sim::InProcess run("clock=1000000", watched_by({hungry}, true, seen));
  EXPECT_DOUBLE_EQ(run.seen.of("first").derived.energy_j.value(), 0.5);  // 500 W for 1 ms
}

// The last window counts energy; the three rounds of the tier are too short for the telemetry.
TEST(Throttling, WhereItIsAskedForEnergyComesFromAWindowOfItsOwn) {
  RoundTelemetry window;
  window.window_s = 2.5;
  window.energy_j = 1000.0;
  const std::deque<RoundTelemetry> script{RoundTelemetry{}, RoundTelemetry{}, RoundTelemetry{}, window};
  Seen seen;
  RunOptions options = watched_by(script, false, seen);
  options.energy = true;
  SimBackend backend(sim::parse_script("clock=1000000"));
  sim::Remembering remembering;
  const std::vector<PlannedCase> cases = sim::sim_cases();
  run_in_process(backend, std::span(cases).first(1), options, remembering, remembering.stop);

  const CaseRecord& record = remembering.of("first");
  EXPECT_EQ(record.verdict, Verdict::pass);
  EXPECT_EQ(record.rounds.size(), 3U);  // the window is no round
  EXPECT_EQ(seen.rounds, 4);
  EXPECT_EQ(seen.open_rounds, 0);
  EXPECT_DOUBLE_EQ(record.derived.energy_j.value(), 0.4);  // 400 W for 1 ms
  const auto events = backend.events();
  const auto last = std::find_if(events.rbegin(), events.rend(),
                                 [](const SimEvent& event) { return event.what == SimEvent::What::time; });
  ASSERT_NE(last, events.rend());
  EXPECT_EQ(last->plan.samples * last->plan.batch, 9 * 256);  // runs of 1 ms: 2200 fill 2.2 s
}

TEST(Throttling, WithoutSensorsNoTimeIsSpentOnEnergy) {
  RunOptions options = sim::smoke_options();
  options.energy = true;
  const sim::InProcess with("clock=1000000", options);
  const sim::InProcess without("clock=1000000");
  EXPECT_FALSE(with.seen.of("first").derived.energy_j.has_value());
  EXPECT_EQ(with.backend.events().size(), without.backend.events().size());
}

TEST(Throttling, ABackendThatThrowsLeavesNoRoundOpen) {
  Seen seen;
  sim::InProcess run("out_of_memory/sequence@first.gemm", watched_by({}, false, seen));
  EXPECT_EQ(run.seen.of("first").verdict, Verdict::error);
  EXPECT_EQ(seen.open_rounds, 0);
}

}  // namespace
}  // namespace gpubench

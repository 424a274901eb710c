// Rounds that the device's sensors find invalid: run again, then kept and flagged, never for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
};

/// Says of one round after the other what the script says, then nothing wrong. Its time does not pass.
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

/// The only case that had a round rejected, or kept in spite of its fault.
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
  ASSERT_EQ(record->rounds.size(), 3U);  // as many as any case of the tier: rejected rounds are not kept
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

TEST(Throttling, ANewMemoryErrorIsRunAgainToo) {
  RoundTelemetry error;
  error.uncorrected_errors = 1;
  Seen seen;
  sim::InProcess run("", watched_by({error}, false, seen));
  EXPECT_THAT(seen.rests, ElementsAre(0.5));
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

TEST(Throttling, ABackendThatThrowsLeavesNoRoundOpen) {
  Seen seen;
  sim::InProcess run("out_of_memory/sequence@first.gemm", watched_by({}, false, seen));
  EXPECT_EQ(run.seen.of("first").verdict, Verdict::error);
  EXPECT_EQ(seen.open_rounds, 0);
}

}  // namespace
}  // namespace gpubench

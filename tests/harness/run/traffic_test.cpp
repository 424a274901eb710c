// Bytes that cross the bus, counted by a backend whose memory the host cannot see.
#include <gtest/gtest.h>

#include <array>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

constexpr std::int64_t matrix_bytes = 8 * 8 * 4;

/// The step (sim_suite.h) on such a backend.
struct Step {
  explicit Step(RunOptions options, const std::string& script = "opaque;examines;clock=1000")
      : backend(parse_script(script)) {
    const std::array cases{step_case()};
    run_in_process(backend, cases, options, seen, seen.stop);
  }
  /// The traffic before an op was first timed alone.
  [[nodiscard]] SimTraffic before(const std::string& op) const {
    for (const SimEvent& event : backend.events()) {
      if (event.what == SimEvent::What::time && !event.sequence && event.labels.front() == op) return event.before;
    }
    throw std::logic_error(op + " was not timed alone");
  }
  SimBackend backend;
  Remembering seen;
};

// If the device can't copy, restored storages cross the bus both ways.
TEST(Traffic, OpsThatAreTimedAloneHaveOnlyWhatTheyOverwroteRestored) {
  const Step step(smoke_options(), "opaque;clock=1000");

  ASSERT_EQ(step.seen.of("step").verdict, Verdict::pass) << step.seen.of("step").reason;
  ASSERT_EQ(step.seen.of("step").derived.breakdown.size(), 3U);
  const std::int64_t at_first = step.before("step.c").written_bytes;
  const std::int64_t read_at_first = step.before("step.c").read_bytes;
  EXPECT_EQ(step.before("step.d").written_bytes - at_first, matrix_bytes);        // c
  EXPECT_EQ(step.before("step.sum").written_bytes - at_first, 2 * matrix_bytes);  // and d
  EXPECT_EQ(step.backend.traffic().written_bytes - at_first, 2 * matrix_bytes);   // the sum overwrote no state
  EXPECT_EQ(step.backend.traffic().read_bytes - read_at_first, 2 * matrix_bytes);
}

TEST(Traffic, ADeviceThatCopiesRestoresItsStateItself) {
  const Step step(smoke_options());

  ASSERT_EQ(step.seen.of("step").verdict, Verdict::pass) << step.seen.of("step").reason;
  EXPECT_EQ(step.backend.traffic().written_bytes, step.before("step.c").written_bytes);
  EXPECT_EQ(step.backend.traffic().read_bytes, step.before("step.c").read_bytes);
}

TEST(Traffic, ABreakdownRunsEveryOpOnTheStateThatSetUpLeft) {
  const Step step(smoke_options());

  std::map<std::string, std::vector<double>> before;  // an estimate, then its samples: one run each on the sim backend
  for (const SimEvent& event : step.backend.events()) {
    if (event.what == SimEvent::What::time && !event.sequence)
      before[event.labels.front()].push_back(event.output_before);
  }
  ASSERT_EQ(before["step.sum"].size(), 2U);
  EXPECT_NE(before["step.c"][1], before["step.c"][0]);  // c' overwrote c in the same place
  EXPECT_NE(before["step.d"][1], before["step.d"][0]);
  EXPECT_FLOAT_EQ(static_cast<float>(before["step.sum"][1]),
                  static_cast<float>(before["step.c"][0] + before["step.d"][0]));
}

TEST(Traffic, WithoutABreakdownNoOpIsTimedAlone) {
  RunOptions options = smoke_options();
  options.breakdown = false;
  const Step step(options);

  EXPECT_EQ(step.seen.of("step").verdict, Verdict::pass);
  EXPECT_TRUE(step.seen.of("step").derived.breakdown.empty());
  EXPECT_THROW((void)step.before("step.c"), std::logic_error);
}

// Storages a, c, d and s, the workspace, and the kept state of c and d, each between two guards of 256 bytes.
TEST(Traffic, AnUncheckedStepMovesItsSourcesOnceAndNothingPerRound) {
  RunOptions options = smoke_options();
  options.check = CheckMode::off;
  options.breakdown = false;
  const Step step(options);

  const std::int64_t rounds = static_cast<std::int64_t>(step.seen.of("step").rounds.size());
  ASSERT_EQ(rounds, 3);
  constexpr std::int64_t guards = 7 * 2 * 256;
  constexpr std::int64_t filled = 4 * matrix_bytes;                                 // three sources; s is poisoned
  EXPECT_EQ(step.backend.traffic().written_bytes, guards + filled + matrix_bytes);  // s is poisoned again by reset()
  EXPECT_EQ(step.backend.traffic().read_bytes, 3 * matrix_bytes);                   // the sources where they are filled
}

/// Bytes read between the first two timed rounds: the cost of comparing a round.
std::int64_t read_after_a_round(const Step& step) {
  std::vector<std::int64_t> read;  // two estimates, then a round each
  for (const SimEvent& event : step.backend.events()) {
    if (event.what == SimEvent::What::time && event.sequence) read.push_back(event.before.read_bytes);
  }
  return read.at(3) - read.at(2);
}

// c, d and s are compared after every round.
TEST(Traffic, ARoundIsLookedAtByFingerprintsWhereTheDeviceMakesThem) {
  RunOptions options = smoke_options();
  EXPECT_EQ(read_after_a_round(Step(options)), 3 * 8);
  // Otherwise by all outputs, and the restored storages are read as well.
  EXPECT_EQ(read_after_a_round(Step(options, "opaque;clock=1000")), 3 * matrix_bytes + 2 * matrix_bytes);
  // The full check does not trust the device's fingerprints, only its copies.
  options.check = CheckMode::full;
  EXPECT_EQ(read_after_a_round(Step(options)), 3 * matrix_bytes);
}

}  // namespace
}  // namespace gpubench::sim

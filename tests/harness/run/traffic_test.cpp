// How many bytes cross the bus, counted by a backend whose memory the host does not see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

constexpr std::int64_t matrix_bytes = 8 * 8 * 4;

/// The step (sim_suite.h) on such a backend.
struct Step {
  explicit Step(RunOptions options, const std::string& script = "opaque;clock=1000") : backend(parse_script(script)) {
    const std::array cases{step_case()};
    run_in_process(backend, cases, options, seen, seen.stop);
  }
  /// What had crossed when an op was timed alone for the first time.
  [[nodiscard]] SimTraffic before(const std::string& op) const {
    for (const SimEvent& event : backend.events()) {
      if (event.what == SimEvent::What::time && !event.sequence && event.labels.front() == op) return event.before;
    }
    throw std::logic_error(op + " was not timed alone");
  }
  SimBackend backend;
  Remembering seen;
};

TEST(Traffic, OpsThatAreTimedAloneHaveOnlyWhatTheyOverwroteRestored) {
  const Step step(smoke_options());

  ASSERT_EQ(step.seen.of("step").verdict, Verdict::pass) << step.seen.of("step").reason;
  ASSERT_EQ(step.seen.of("step").derived.breakdown.size(), 3U);
  const std::int64_t at_first = step.before("step.c").written_bytes;
  EXPECT_EQ(step.before("step.d").written_bytes - at_first, matrix_bytes);        // c
  EXPECT_EQ(step.before("step.sum").written_bytes - at_first, 2 * matrix_bytes);  // and d
  EXPECT_EQ(step.backend.traffic().written_bytes - at_first, 2 * matrix_bytes);   // the sum overwrote no state
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
  EXPECT_NE(before["step.c"][1], before["step.c"][0]);  // c lies where c' does, and was overwritten
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

// Of the four storages a, c, d and s, each between two guards of 256 bytes, beside a workspace between two of its own.
TEST(Traffic, AnUncheckedStepMovesItsSourcesOnceAndItsStateOncePerRound) {
  RunOptions options = smoke_options();
  options.check = CheckMode::off;
  options.breakdown = false;
  const Step step(options);

  const std::int64_t rounds = static_cast<std::int64_t>(step.seen.of("step").rounds.size());
  ASSERT_EQ(rounds, 3);
  constexpr std::int64_t state = 2 * matrix_bytes;
  constexpr std::int64_t guards = 5 * 2 * 256;
  constexpr std::int64_t filled = 4 * matrix_bytes;  // three sources; s is poisoned
  // Restored by reset() with the copies (which poisons s again), before each round, and after the estimate.
  EXPECT_EQ(step.backend.traffic().written_bytes, guards + filled + state + matrix_bytes + (rounds + 1) * state);
  // The sources where they are filled, and the state where it is kept.
  EXPECT_EQ(step.backend.traffic().read_bytes, 3 * matrix_bytes + state);
}

}  // namespace
}  // namespace gpubench::sim

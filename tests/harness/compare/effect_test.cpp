#include "harness/compare/effect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/harness/compare/made_reports.h"

namespace gpubench {
namespace effect_test {

using Cases = std::vector<Evidence>;

Effect only(const Evidence& one, double assumed = 0.03) { return effects_of(Cases{one}, assumed).front(); }

// Baseline 1, 2, 3 (mean 2, squares 2), candidate 4, 6, 8 (mean 6, squares 8). The one case is the suite's median, so
// v = 10 / 4 = 2.5 and s^2 = (2 + 8 + 4 * 2.5) / 8 = 2.5; error = sqrt(2.5 * (1/3 + 1/3)) = sqrt(5/3).
TEST(Effect, WithoutACalibrationTheSpreadIsDrawnTowardsTheSuites) {
  const Effect effect = only(evidence_of({1, 2, 3}, {4, 6, 8}));
  EXPECT_EQ(effect.source, NoiseSource::sides);
  EXPECT_NEAR(effect.delta, 4.0, 1e-14);
  EXPECT_EQ(effect.degrees, 8.0);
  EXPECT_NEAR(effect.spread, std::sqrt(2.5), 1e-14);
  EXPECT_NEAR(effect.error, std::sqrt(5.0 / 3.0), 1e-14);
  EXPECT_NEAR(effect.usual_spread, std::sqrt(2.5), 1e-14);
}

// Three cases with pooled variances 1, 2.5 and 100: the median is 2.5. The quiet one becomes
// (4 * 1 + 4 * 2.5) / 8 = 1.75, the loud one (4 * 100 + 4 * 2.5) / 8 = 51.25.
TEST(Effect, TheMedianOfTheSuiteIgnoresALoudCase) {
  const Cases cases{evidence_of({-1, 0, 1}, {-1, 0, 1}), evidence_of({1, 2, 3}, {4, 6, 8}),
                    evidence_of({-10, 0, 10}, {-10, 0, 10})};
  const std::vector<Effect> effects = effects_of(cases, 0.03);
  EXPECT_NEAR(effects[0].spread, std::sqrt(1.75), 1e-14);
  EXPECT_NEAR(effects[2].spread, std::sqrt(51.25), 1e-13);
}

// s0 = 0.5 with 9 degrees: s^2 = (2 + 8 + 9 * 0.25) / 13 = 12.25 / 13.
TEST(Effect, ACalibrationIsPooledWithTheSides) {
  const Effect effect = only(calibrated_evidence({1, 2, 3}, {4, 6, 8}, 0.5));
  EXPECT_EQ(effect.source, NoiseSource::calibration);
  EXPECT_EQ(effect.degrees, 13.0);
  EXPECT_NEAR(effect.spread, std::sqrt(12.25 / 13.0), 1e-14);
  EXPECT_NEAR(effect.usual_spread, 0.5, 1e-15);
}

TEST(Effect, WithOneRunASideACalibrationIsAllThereIs) {
  const Effect effect = only(calibrated_evidence({1.0}, {1.25}, 0.02));
  EXPECT_EQ(effect.degrees, 9.0);
  EXPECT_NEAR(effect.delta, 0.25, 1e-15);
  EXPECT_NEAR(effect.spread, 0.02, 1e-15);
  EXPECT_NEAR(effect.error, 0.02 * std::sqrt(2.0), 1e-15);
}

// Five baseline runs 0, 1, 2, 3, 4 have variance 2.5; as the calibration they are not pooled again: s^2 = 4 * 2.5 / 4.
TEST(Effect, ABaselineThatIsItsOwnCalibrationCountsOnce) {
  Evidence one = evidence_of({0, 1, 2, 3, 4}, {2});
  one.prior = Prior{2.5, 5, true};
  const Effect effect = only(one);
  EXPECT_EQ(effect.degrees, 4.0);
  EXPECT_NEAR(effect.spread, std::sqrt(2.5), 1e-14);
  EXPECT_NEAR(effect.error, std::sqrt(2.5 * (0.2 + 1.0)), 1e-14);
}

// Four invocations cannot replace repeated runs, but add to them.
TEST(Effect, ASmallCalibrationNeedsRepeatedRuns) {
  EXPECT_EQ(only(calibrated_evidence({1.0}, {1.1}, 0.01, 4)).source, NoiseSource::assumed);
  EXPECT_EQ(only(calibrated_evidence({1.0}, {1.1}, 0.01, 5)).source, NoiseSource::calibration);
  const Effect repeated = only(calibrated_evidence({1, 2, 3}, {4, 6, 8}, 0.5, 4));
  EXPECT_EQ(repeated.source, NoiseSource::calibration);
  EXPECT_EQ(repeated.degrees, 7.0);
  EXPECT_EQ(only(calibrated_evidence({1, 2, 3}, {4, 6, 8}, 0.5, 1)).source, NoiseSource::sides);
}

// Two runs a side are fewer than three: assumed 3% each, plus the variance of rounds: sqrt(.03^2 + .04^2) = .05.
TEST(Effect, TooFewRunsAndNoCalibrationMeanAnAssumedNoise) {
  Evidence one = evidence_of({1, 1}, {1, 1});
  for (auto* side : {&one.baseline, &one.candidate}) {
    for (CaseRun& run : *side) run.round_error = 0.04;
  }
  const Effect effect = only(one);
  EXPECT_EQ(effect.source, NoiseSource::assumed);
  EXPECT_EQ(effect.degrees, 4.0);
  EXPECT_NEAR(effect.spread, 0.05, 1e-15);
  EXPECT_NEAR(effect.error, 0.05, 1e-15);  // sqrt(.05^2 / 2 + .05^2 / 2)
}

TEST(Effect, RunsThatAgreeExactlyStillVaryByATenthOfAPercent) {
  EXPECT_EQ(only(evidence_of({1, 1, 1}, {1, 1, 1})).spread, 0.001);
  EXPECT_EQ(only(calibrated_evidence({1}, {1}, 0.0)).spread, 0.001);
}

// Ten rounds a run that vary by 3% and 5%: sqrt((.03^2 + .05^2) / 2) = sqrt(.0017), over 3 runs a side.
TEST(Effect, RunsVaryAtLeastAsTheirRoundsDo) {
  for (Evidence one : {evidence_of({1, 1, 1}, {1, 1, 1}), calibrated_evidence({1, 1, 1}, {1, 1, 1}, 0.001)}) {
    for (CaseRun& run : one.baseline) run.round_error = 0.03 / std::sqrt(10.0);
    for (CaseRun& run : one.candidate) run.round_error = 0.05 / std::sqrt(10.0);
    const Effect effect = only(one);
    EXPECT_NEAR(effect.spread, std::sqrt(0.0017), 1e-15);
    EXPECT_NEAR(effect.error, std::sqrt(0.0017 * 2 / 3), 1e-15);
  }
}

TEST(Effect, RoundsThatAgreeBetterThanRunsChangeNothing) {
  Evidence one = evidence_of({1, 2, 3}, {4, 6, 8});
  const Effect without = only(one);
  for (CaseRun& run : one.baseline) run.round_error = 0.1;
  EXPECT_EQ(only(one).spread, without.spread);
}

TEST(Effect, ASideWithoutRunsIsRefused) {
  EXPECT_THROW((void)only(evidence_of({}, {1})), std::invalid_argument);
  EXPECT_THROW((void)only(evidence_of({1}, {})), std::invalid_argument);
}

}  // namespace effect_test
}  // namespace gpubench

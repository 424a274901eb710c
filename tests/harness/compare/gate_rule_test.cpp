// The rule, condition by condition. Effects are logs: 0.05 is slightly more than 5%.
#include "harness/compare/gate_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/harness/compare/made_reports.h"

namespace gpubench {

namespace gate_rule_test {

using Cases = std::vector<Evidence>;

Judgement only(const Evidence& one, const GateRule& rule = {}) { return judge_cases(Cases{one}, rule).front(); }

// Calibrated to 0.5%, three runs a side: error = 0.5% * sqrt(2/3) = 0.41%.
Evidence shifted(double delta, double spread = 0.005) {
  return calibrated_evidence({1.0, 1.0, 1.0}, {1.0 + delta, 1.0 + delta, 1.0 + delta}, spread);
}

TEST(GateRule, ALargeAndCertainSlowdownHasRegressed) {
  const Judgement judgement = only(shifted(0.05));
  EXPECT_EQ(judgement.verdict, GateVerdict::regressed);
  EXPECT_EQ(judgement.doubt, InconclusiveReason::none);
  EXPECT_LT(*judgement.q_slower, 0.001);
  EXPECT_GT(*judgement.q_faster, 0.999);
}

TEST(GateRule, ItsMirrorImageHasImproved) { EXPECT_EQ(only(shifted(-0.05)).verdict, GateVerdict::improved); }

TEST(GateRule, ACertainSlowdownThatIsSmallIsUnchanged) {
  const Judgement judgement = only(shifted(0.02));
  EXPECT_LT(*judgement.q_slower, 0.01);
  EXPECT_EQ(judgement.verdict, GateVerdict::unchanged);
}

// log(1.03) = .0295588, inclusive.
TEST(GateRule, TheFloorIsALogarithmOfOnePlusTau) {
  const double floor = std::log1p(0.03);
  EXPECT_EQ(only(shifted(floor + 1e-9, 0.001)).verdict, GateVerdict::regressed);
  EXPECT_NE(only(shifted(floor - 1e-9, 0.001)).verdict, GateVerdict::regressed);
  GateRule wide;
  wide.tau = 0.10;
  EXPECT_EQ(only(shifted(0.05), wide).verdict, GateVerdict::unchanged);
}

// One run a side with 5% noise: 10% is 1.41 standard errors, p = .096 with 9 degrees of freedom.
TEST(GateRule, ALargeDifferenceThatChanceExplainsIsInconclusive) {
  const Judgement judgement = only(calibrated_evidence({1.0}, {1.1}, 0.05));
  EXPECT_EQ(judgement.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(judgement.doubt, InconclusiveReason::noise);
  EXPECT_NEAR(*judgement.q_slower, 0.0954, 5e-4);
}

// The 95% interval with 9 degrees of freedom: 0.1 +- 2.262157 * 0.05 * sqrt(2).
TEST(GateRule, TheIntervalIsStudents) {
  const Judgement judgement = only(calibrated_evidence({1.0}, {1.1}, 0.05));
  EXPECT_NEAR(judgement.low95, 0.1 - 2.262157 * 0.05 * std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(judgement.high95, 0.1 + 2.262157 * 0.05 * std::sqrt(2.0), 1e-6);
}

// One case: an estimate must reach t(0.99, 9) = 2.821438 standard errors of 0.0707107, which happens with 90% if the
// truth is t(0.9, 9) = 1.383029 more. Quiet cases: the floor is log 1.03, with t(0.9, 13) = 1.350171 errors of 0.0816%.
TEST(GateRule, TheDetectableSlowdownIsFoundInNineOfTenGates) {
  const double noisy = *only(calibrated_evidence({1.0}, {1.0}, 0.05)).detectable;
  EXPECT_NEAR(noisy, std::expm1((2.821438 + 1.383029) * 0.0707107), 1e-5);
  EXPECT_EQ(noisy, detectable_slowdown(precision_of(0.05, 9.0, 1), 1.0, {}));
  EXPECT_NEAR(*only(shifted(0.0, 0.001)).detectable, 1.03 * std::exp(1.350171 * 0.001 * std::sqrt(2.0 / 3.0)) - 1.0,
              1e-7);
}

// Spread 5%, prior 9 degrees: K runs a side find 6% where (t(.99, d) + t(.9, d)) 0.05 sqrt(2 / K) <= log 1.06 with
// d = 2 K + 7. That holds from K = 21 on (d = 49: 2.40489 + 1.29907, times 0.0154303, is 0.05715; log 1.06 is 0.05827)
// and not at 20 (d = 47: 2.40835 + 1.29982, times 0.0158114, is 0.05863).
TEST(GateRule, PowerIsThatOfTheMedianCaseAndOfTheWorstTenth) {
  const Cases one{calibrated_evidence({1.0}, {1.0}, 0.05)};
  const std::vector<Judgement> judged = judge_cases(one, {});
  const std::optional<Power> power = power_of(one, judged, {});
  ASSERT_TRUE(power.has_value());
  EXPECT_EQ(power->median, *judged.front().detectable);
  EXPECT_EQ(power->worst_tenth, *judged.front().detectable);
  EXPECT_EQ(power->runs_for_twice_tau, 21);
  const Cases three{shifted(0.0, 0.01), shifted(0.0, 0.05), shifted(0.0, 0.9)};
  const std::vector<Judgement> judgements = judge_cases(three, {});
  EXPECT_EQ(power_of(three, judgements, {})->median, *judgements[1].detectable);
  EXPECT_GT(power_of(three, judgements, {})->worst_tenth, *judgements[1].detectable);
  const Cases hopeless{shifted(0.0, 0.9)};
  EXPECT_FALSE(power_of(hopeless, judge_cases(hopeless, {}), {})->runs_for_twice_tau.has_value());
}

TEST(GateRule, PowerIsNotStatedWhereTheNoiseIsAssumedOrTheMachineBusy) {
  const Cases assumed{evidence_of({1.0}, {1.0})};
  EXPECT_FALSE(power_of(assumed, judge_cases(assumed, {}), {}).has_value());
  Cases busy{shifted(0.02, 0.05)};
  for (CaseRun& run : busy.front().candidate) run.cpu_pressure = 0.6;
  const std::vector<Judgement> judged = judge_cases(busy, {});
  EXPECT_EQ(judged.front().doubt, InconclusiveReason::busy);
  EXPECT_FALSE(judged.front().more_runs.has_value());
  EXPECT_FALSE(power_of(busy, judged, {}).has_value());
}

// Forty equal cases: the quantile is t(1 - 0.01 / 40, 9), which leaves a tail of 0.00025, and t(0.9, 9).
TEST(GateRule, TheDetectableSlowdownPaysForTheNumberOfCases) {
  const Cases cases(40, calibrated_evidence({1.0}, {1.0}, 0.05));
  const Judgement judgement = judge_cases(cases, {}).front();
  const double t = std::log1p(*judgement.detectable) / judgement.effect.error;
  EXPECT_NEAR(t - 1.383029, 5.2907, 2e-3);  // beyond the printed t(0.9995, 9) = 4.7809
}

// p = 0.0088 passes alone; as the best of 40 cases without differences q is 0.35.
TEST(GateRule, OneOfManyCasesMustBeMoreCertain) {
  const Evidence doubtful = calibrated_evidence({1.0}, {1.0 + 2.90 * 0.02 * std::sqrt(2.0)}, 0.02);
  EXPECT_EQ(only(doubtful).verdict, GateVerdict::regressed);
  Cases cases(40, calibrated_evidence({1.0}, {1.0}, 0.02));
  cases.front() = doubtful;
  EXPECT_EQ(judge_cases(cases, {}).front().verdict, GateVerdict::inconclusive);
}

TEST(GateRule, WithoutACalibrationThreeRunsASideAreEnoughAndTwoAreNot) {
  const std::vector<double> three{1.0, 1.002, 0.998};
  EXPECT_EQ(only(evidence_of(three, {1.10, 1.102, 1.098})).verdict, GateVerdict::regressed);
  const Judgement two = only(evidence_of({1.0, 1.002}, {1.10, 1.102}));
  EXPECT_EQ(two.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(two.doubt, InconclusiveReason::unknown_noise);
  EXPECT_EQ(two.more_runs, 1);
  EXPECT_FALSE(two.q_slower.has_value());
}

// 5 sqrt(2) 3% = 21.2% on a processor; 1% on a GPU makes it 7.07%. Never unchanged.
TEST(GateRule, ASingleRunWithoutACalibrationConcludesOnlyFarBeyondTheAssumedNoise) {
  EXPECT_EQ(only(evidence_of({1.0}, {1.211})).verdict, GateVerdict::inconclusive);
  EXPECT_EQ(only(evidence_of({1.0}, {1.213})).verdict, GateVerdict::regressed);
  EXPECT_EQ(only(evidence_of({1.0}, {0.787})).verdict, GateVerdict::improved);
  const Judgement same = only(evidence_of({1.0}, {1.0}));
  EXPECT_EQ(same.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(same.doubt, InconclusiveReason::unknown_noise);
  EXPECT_EQ(same.more_runs, 2);
  GateRule gpu;
  gpu.assumed_spread = assumed_spread("cuda");
  EXPECT_EQ(only(evidence_of({1.0}, {1.0706}), gpu).verdict, GateVerdict::inconclusive);
  EXPECT_EQ(only(evidence_of({1.0}, {1.0709}), gpu).verdict, GateVerdict::regressed);
  gpu.tau = 0.10;
  EXPECT_EQ(only(evidence_of({1.0}, {1.09}), gpu).verdict, GateVerdict::inconclusive);
}

TEST(GateRule, FewerThanFiveRoundsOfFiveSamplesConcludeNothing) {
  for (const auto& [rounds, samples] : {std::pair{4, 10}, {10, 4}, {3, 3}}) {
    Evidence one = shifted(0.5);
    one.candidate[1].rounds = rounds;
    one.candidate[1].samples = samples;
    const Judgement judgement = only(one);
    EXPECT_EQ(judgement.verdict, GateVerdict::inconclusive);
    EXPECT_EQ(judgement.doubt, InconclusiveReason::few_samples);
  }
  Evidence enough = shifted(0.5);
  enough.candidate[1].rounds = 5;
  enough.candidate[1].samples = 5;
  EXPECT_EQ(only(enough).verdict, GateVerdict::regressed);
}

// log(1.5) is 0.405; the 95% interval of three runs with 0.5% noise is 0.9% to either side.
TEST(GateRule, BatchesThatDifferByMoreThanTwiceExplainAFactorAndNoMore) {
  for (const double sign : {1.0, -1.0}) {
    Evidence one = shifted(sign * 0.3);
    const GateVerdict changed = sign > 0.0 ? GateVerdict::regressed : GateVerdict::improved;
    one.candidate[0].batch = 8;  // the others have 4
    EXPECT_EQ(only(one).verdict, changed);
    for (const std::int64_t batch : {9, 1}) {
      one.candidate[0].batch = batch;
      EXPECT_EQ(only(one).verdict, GateVerdict::inconclusive);
      EXPECT_EQ(only(one).doubt, InconclusiveReason::batch);
    }
    for (const auto& [delta, verdict] :
         {std::pair(0.40, GateVerdict::inconclusive), std::pair(0.41, GateVerdict::inconclusive),
          std::pair(0.43, changed), std::pair(std::log(4.0), changed)}) {
      Evidence other = shifted(sign * delta);
      for (CaseRun& run : other.candidate) run.batch = 1;
      EXPECT_EQ(only(other).verdict, verdict) << sign * delta;
      EXPECT_EQ(only(other).doubt == InconclusiveReason::none, verdict == changed) << sign * delta;
    }
  }
  Evidence one{{CaseRun{1.0, 0.0, 10, 10, 4}}, {CaseRun{1.0 + std::log(4.0), 0.0, 10, 10, 1}}};
  EXPECT_EQ(only(one).verdict, GateVerdict::regressed);
}

// Two of three candidate runs are 7 usual spreads slower.
TEST(GateRule, ACaseWithTwoSpeedsConcludesNothing) {
  const Judgement judgement = only(calibrated_evidence({1.0, 1.0, 1.0}, {1.0, 1.07, 1.07}, 0.01));
  EXPECT_EQ(judgement.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(judgement.doubt, InconclusiveReason::bimodal);
  EXPECT_NE(only(calibrated_evidence({1.0, 1.0, 1.0}, {1.0, 1.059, 1.059}, 0.01)).doubt, InconclusiveReason::bimodal);
}

// Two speeds 7% apart explain a difference of 7%, but not one of 20%.
TEST(GateRule, TwoSpeedsExplainNoDifferenceLargerThanTheirDistance) {
  EXPECT_EQ(only(calibrated_evidence({1.0, 1.07, 1.0}, {1.2, 1.27, 1.27}, 0.01)).verdict, GateVerdict::regressed);
}

// Cases in doubt are left out of the correction: q of the good one stays p.
TEST(GateRule, CasesInDoubtAreNotTested) {
  Evidence doubtful = shifted(0.0);
  doubtful.candidate[0].rounds = 1;
  const std::vector<Judgement> judgements = judge_cases(Cases{shifted(0.05), doubtful}, {});
  EXPECT_EQ(judgements[0].q_slower, only(shifted(0.05)).q_slower);
  EXPECT_FALSE(judgements[1].q_slower.has_value());
}

Evidence with_clocks(Evidence one, double baseline_mhz, double candidate_mhz) {
  for (CaseRun& run : one.baseline) run.sm_mhz = baseline_mhz;
  for (CaseRun& run : one.candidate) run.sm_mhz = candidate_mhz;
  return one;
}

// 5% slower at a clock that is 5% lower is the same number of cycles.
TEST(GateRule, ASlowdownThatTheClockExplainsIsInconclusive) {
  const Judgement judgement = only(with_clocks(shifted(std::log(1.05)), 2000, 2000 / 1.05));
  EXPECT_EQ(judgement.verdict, GateVerdict::inconclusive);
  EXPECT_EQ(judgement.doubt, InconclusiveReason::clock);
  EXPECT_EQ(only(with_clocks(shifted(std::log(1.05)), 2000, 1990)).verdict, GateVerdict::regressed);
  // 10% slower at a clock 5% lower leaves 5% of cycles, more than tau / 2.
  EXPECT_EQ(only(with_clocks(shifted(std::log(1.10)), 2000, 2000 / 1.05)).verdict, GateVerdict::regressed);
}

// The mean pressure of a side's runs counts, if every run reports it.
TEST(GateRule, OnAProcessorThatOthersTookNoDifferenceIsCalledOne) {
  const auto under = [](std::vector<double> baseline, std::vector<double> candidate, double delta = 0.1) {
    Evidence one = shifted(delta);
    for (std::size_t i = 0; i < baseline.size(); ++i) one.baseline[i].cpu_pressure = baseline[i];
    for (std::size_t i = 0; i < candidate.size(); ++i) one.candidate[i].cpu_pressure = candidate[i];
    return only(one);
  };
  EXPECT_EQ(under({0.0, 0.1, 0.2}, {0.9, 1.0, 1.0}).doubt, InconclusiveReason::busy);
  EXPECT_EQ(under({0.9, 1.0, 1.0}, {0.0, 0.1, 0.2}, -0.1).doubt, InconclusiveReason::busy);
  EXPECT_EQ(under({0.9, 1.0, 1.0}, {0.9, 1.0, 1.0}).verdict, GateVerdict::inconclusive);
  EXPECT_EQ(under({0.0, 0.1, 1.0}, {0.2, 0.3, 0.9}).verdict, GateVerdict::regressed);  // means .37 and .47
  EXPECT_EQ(under({}, {1.0, 1.0}).verdict, GateVerdict::regressed);
}

TEST(GateRule, ADriftingCaseNeedsThreeRunsToHaveRegressed) {
  Evidence one = calibrated_evidence({1.0}, {1.1}, 0.005);
  one.candidate[0].drifting = true;
  EXPECT_EQ(only(one).doubt, InconclusiveReason::drift);
  Evidence repeated = shifted(0.1);
  repeated.candidate[0].drifting = true;
  EXPECT_EQ(only(repeated).verdict, GateVerdict::regressed);
  Evidence faster = calibrated_evidence({1.1}, {1.0}, 0.005);
  faster.candidate[0].drifting = true;
  EXPECT_EQ(only(faster).verdict, GateVerdict::improved);
}

// 5% slower, noise 3% known from 10 runs. With k runs a side t = .05 / (.03 sqrt(2 / k)) with 2 k + 7 degrees of
// freedom: k = 4: 2.357 (needs t(0.99, 15) = 2.602), k = 5: 2.635 (needs t(0.99, 17) = 2.567). So four more than one.
TEST(GateRule, MoreRunsAreThoseAfterWhichTheTestWouldPass) {
  const Judgement judgement = only(calibrated_evidence({1.0}, {1.05}, 0.03));
  EXPECT_EQ(judgement.doubt, InconclusiveReason::noise);
  EXPECT_EQ(judgement.more_runs, 4);
}

// No difference, noise 3%: unchanged needs t(0.95, 2 k + 7) * .03 * sqrt(2 / k) < log(1.03) = .029559:
// k = 6: 1.7291 (19 degrees) * .017321 = .029949, no; k = 7: 1.7207 (21) * .016036 = .027593, yes.
TEST(GateRule, MoreRunsAreThoseAfterWhichNothingWouldBeLeftToFind) {
  EXPECT_EQ(only(calibrated_evidence({1.0}, {1.0}, 0.03)).more_runs, 6);
}

// No number of runs up to the limit settles a difference within a millionth of the floor.
TEST(GateRule, ADifferenceAtTheFloorItselfIsNeverSettled) {
  const Judgement judgement = only(calibrated_evidence({1.0}, {1.0 + std::log1p(0.03) - 1e-6}, 0.03));
  EXPECT_EQ(judgement.doubt, InconclusiveReason::noise);
  EXPECT_FALSE(judgement.more_runs.has_value());
}

TEST(GateRule, AShiftOfMostCasesIsTold) {
  Cases cases(20, shifted(0.02));
  EXPECT_NEAR(common_shift(judge_cases(cases, {}))->median, 0.02, 1e-12);
  EXPECT_EQ(common_shift(judge_cases(cases, {}))->share, 1.0);
  EXPECT_FALSE(common_shift(judge_cases(Cases(19, shifted(0.02)), {})).has_value());
  EXPECT_FALSE(common_shift(judge_cases(Cases(20, shifted(0.009)), {})).has_value());
  for (int i = 0; i < 7; ++i) cases[i] = shifted(-0.02);  // 13 of 20 are 65%
  EXPECT_FALSE(common_shift(judge_cases(cases, {})).has_value());
}

TEST(GateRule, TauMustBeAFraction) {
  for (const double tau : {0.0, -0.1, 10.0, std::nan("")}) {
    GateRule rule;
    rule.tau = tau;
    EXPECT_THROW((void)only(shifted(0.0), rule), std::invalid_argument) << tau;
  }
}

TEST(GateRule, NoCasesHaveNoJudgements) { EXPECT_TRUE(judge_cases(Cases{}, {}).empty()); }

}  // namespace gate_rule_test

namespace false_discovery_test {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using P = std::vector<double>;

// n = 5, sorted .005 .009 .019 .022 .051; p n / rank: .025 .0225 .031667 .0275 .051; least from the right:
// .0225 .0225 .0275 .0275 .051.
TEST(FalseDiscovery, RatesAreTheLeastOfThoseBehindThem) {
  EXPECT_THAT(false_discovery_rates(P{0.022, 0.005, 0.051, 0.009, 0.019}),
              ElementsAre(DoubleNear(0.0275, 1e-15), DoubleNear(0.0225, 1e-15), DoubleNear(0.051, 1e-15),
                          DoubleNear(0.0225, 1e-15), DoubleNear(0.0275, 1e-15)));
}

// The fifteen p-values of the example in Benjamini and Hochberg (1995), section 3.2: at 5% the first four are findings
// (p_(4) = .0095 <= 4/15 * .05 = .01333) and the fifth is not (.0201 > .01667).
TEST(FalseDiscovery, TheAuthorsOwnExampleHasFourFindings) {
  const P p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
            0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const P q = false_discovery_rates(p);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(q[i] < 0.05, i < 4) << i;
  EXPECT_NEAR(q[3], 0.0095 * 15 / 4, 1e-15);
}

TEST(FalseDiscovery, TiesShareTheRateOfTheirLastRank) {
  EXPECT_THAT(false_discovery_rates(P{0.02, 0.02, 0.02, 0.8}),
              ElementsAre(DoubleNear(0.08 / 3, 1e-15), DoubleNear(0.08 / 3, 1e-15), DoubleNear(0.08 / 3, 1e-15),
                          DoubleEq(0.8)));
}

TEST(FalseDiscovery, ASingleTestKeepsItsPValueAndNoTestHasNone) {
  EXPECT_THAT(false_discovery_rates(P{0.3}), ElementsAre(0.3));
  EXPECT_TRUE(false_discovery_rates(P{}).empty());
  EXPECT_THAT(false_discovery_rates(P{1.0, 1.0}), ElementsAre(1.0, 1.0));
}

}  // namespace false_discovery_test

}  // namespace gpubench

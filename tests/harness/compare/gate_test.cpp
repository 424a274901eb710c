#include "harness/compare/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<double> steady{1000, 1001, 999};
const std::vector<double> slower{1100, 1101, 1099};

std::vector<Invocation> runs_of_cases(const std::vector<CaseRecord>& cases) {
  std::vector<Invocation> side;
  for (int i = 0; i < 3; ++i) {
    std::vector<CaseRecord> copies = cases;
    for (CaseRecord& record : copies) {
      for (RoundRecord& round : record.rounds) {
        for (double& ns : round.times.device_ns) ns += i;
      }
    }
    side.push_back(read_back(timed_report(copies, i), std::to_string(i) + ".json"));
  }
  return side;
}

GateResult gate_of(const std::vector<CaseRecord>& baseline, const std::vector<CaseRecord>& candidate,
                   const GateOptions& options = {}) {
  return run_gate(runs_of_cases(baseline), runs_of_cases(candidate), options);
}

CaseRecord failed_record(const std::string& workload, Verdict verdict) {
  CaseRecord record = timed_record(workload, 1000);
  record.verdict = verdict;
  record.reason = "for a reason";
  return record;
}

std::string refusal(std::vector<Invocation> baseline, std::vector<Invocation> candidate,
                    const GateOptions& options = {}) {
  return thrown_text<UsageError>([&] { (void)run_gate(baseline, candidate, options); }, "accepted");
}

TEST(Gate, EqualSidesPass) {
  const GateResult result = run_gate(side_of(steady), side_of(steady), {});
  EXPECT_EQ(result.outcome, GateOutcome::passed);
  EXPECT_EQ(result.count(GateVerdict::unchanged), 1);
  EXPECT_EQ(result.noise, "from the reports of both sides");
}

/// One case is four times as slow, so its samples have a quarter of the runs; another is unchanged.
TEST(Gate, ACaseThatIsSoMuchSlowerThatItsBatchIsSmallerFails) {
  CaseRecord slow = timed_record("a", 4000);
  slow.batch = 1;  // the baseline's has 4
  for (RoundRecord& round : slow.rounds) {
    for (double& ns : round.times.device_ns) ns /= 4.0;  // of a sample
  }
  const GateResult result =
      gate_of({timed_record("a", 1000), timed_record("b", 1000)}, {slow, timed_record("b", 1000)});
  EXPECT_EQ(result.outcome, GateOutcome::failed);
  EXPECT_EQ(result.count(GateVerdict::regressed), 1);
  EXPECT_EQ(result.count(GateVerdict::unchanged), 1);
}

TEST(Gate, ACaseThatIsSlowerAndInconclusiveNeverPasses) {
  CaseRecord slow = timed_record("a", 1300);
  slow.rounds.resize(3);
  GateResult result = gate_of({timed_record("a", 1000), timed_record("b", 1000)}, {slow, timed_record("b", 1000)});
  EXPECT_EQ(result.count(GateVerdict::inconclusive), 1);
  EXPECT_EQ(result.count(GateVerdict::unchanged), 1);
  EXPECT_EQ(result.outcome, GateOutcome::inconclusive);
  EXPECT_EQ(result.why, "1 inconclusive with an interval above the relevant change");
  GateOptions options;
  options.tau.all = 0.5;
  result = gate_of({timed_record("a", 1000), timed_record("b", 1000)}, {slow, timed_record("b", 1000)}, options);
  EXPECT_EQ(result.outcome, GateOutcome::passed);
}

TEST(Gate, ASuiteMayHaveAChangeOfItsOwnThatMatters) {
  GateOptions options;
  options.tau.by_suite["gemm"] = 0.15;
  EXPECT_EQ(run_gate(side_of(steady), side_of(slower), options).outcome, GateOutcome::passed);
  options.tau.all = 0.15;
  options.tau.by_suite["gemm"] = 0.03;
  EXPECT_EQ(run_gate(side_of(steady), side_of(slower), options).outcome, GateOutcome::failed);
}

TEST(Gate, ASuiteThatNoReportHasIsRefused) {
  GateOptions options;
  options.tau.by_suite["gem"] = 0.1;
  EXPECT_EQ(refusal(side_of(steady), side_of(steady), options), "--tau: no report has 'gem'; they have: gemm");
}

TEST(Gate, ASlowerCaseFails) {
  const GateResult result = run_gate(side_of(steady), side_of(slower), {});
  EXPECT_EQ(result.outcome, GateOutcome::failed);
  ASSERT_EQ(result.cases.size(), 1U);
  EXPECT_EQ(result.cases[0].verdict, GateVerdict::regressed);
  EXPECT_NEAR(result.cases[0].judgement->effect.delta, std::log(1.1), 1e-4);
  EXPECT_NEAR(result.cases[0].baseline_ns, 1000, 1e-3);
  EXPECT_EQ(result.why, "1 regressed, 0 failing, 0 missing");
}

TEST(Gate, AFasterCasePasses) {
  const GateResult result = run_gate(side_of(slower), side_of(steady), {});
  EXPECT_EQ(result.outcome, GateOutcome::passed);
  EXPECT_EQ(result.cases[0].verdict, GateVerdict::improved);
}

TEST(Gate, ACaseThatNoLongerPassesFails) {
  for (const Verdict verdict : {Verdict::fail, Verdict::downgraded, Verdict::not_proven, Verdict::unverified,
                                Verdict::unsupported, Verdict::skipped, Verdict::error}) {
    const GateResult result = gate_of({timed_record("a", 1000), timed_record("b", 1000)},
                                      {timed_record("a", 1000), failed_record("b", verdict)});
    EXPECT_EQ(result.outcome, GateOutcome::failed) << name(verdict);
    EXPECT_EQ(result.cases[0].verdict, GateVerdict::parity_failed);
    EXPECT_EQ(result.cases[0].candidate_verdict, verdict);
    EXPECT_THAT(result.cases[0].reason, HasSubstr("for a reason"));
  }
}

TEST(Gate, ACheckThatFailedOnBothSidesStillFails) {
  const GateResult failing = gate_of({timed_record("a", 1000), failed_record("b", Verdict::fail)},
                                     {timed_record("a", 1000), failed_record("b", Verdict::fail)});
  EXPECT_EQ(failing.outcome, GateOutcome::failed);
  const GateResult lacking = gate_of({timed_record("a", 1000), failed_record("b", Verdict::unsupported)},
                                     {timed_record("a", 1000), failed_record("b", Verdict::unsupported)});
  EXPECT_EQ(lacking.outcome, GateOutcome::passed);
  EXPECT_EQ(lacking.not_run, 1);
}

TEST(Gate, AMissingCaseFailsUnlessItMayBe) {
  const std::vector<CaseRecord> both{timed_record("a", 1000), timed_record("b", 1000)};
  const GateResult strict = gate_of(both, {timed_record("a", 1000)});
  EXPECT_EQ(strict.outcome, GateOutcome::failed);
  EXPECT_EQ(strict.count(GateVerdict::missing), 1);
  GateOptions options;
  options.allow_missing = true;
  const GateResult lenient = gate_of(both, {timed_record("a", 1000)}, options);
  EXPECT_EQ(lenient.outcome, GateOutcome::passed);
  EXPECT_EQ(lenient.count(GateVerdict::missing), 1);
}

TEST(Gate, ANewCasePasses) {
  const GateResult result = gate_of({timed_record("a", 1000)}, {timed_record("a", 1000), timed_record("b", 1000)});
  EXPECT_EQ(result.outcome, GateOutcome::passed);
  EXPECT_EQ(result.count(GateVerdict::added), 1);
}

TEST(Gate, OneIdOverOtherWorkIsNotComparable) {
  CaseRecord other = timed_record("a", 1000);
  other.derived.flop *= 2;
  other.def_hash = "fedcba9876543210";
  const GateResult result = gate_of({timed_record("a", 1000)}, {other});
  EXPECT_EQ(result.outcome, GateOutcome::not_comparable);
  EXPECT_THAT(result.cases[0].reason, HasSubstr("65.5 kFLOP on one side, 131 kFLOP on the other"));
}

TEST(Gate, ARegressionCountsBeforeWhatIsNotComparable) {
  CaseRecord other = timed_record("b", 1000);
  other.derived.bytes *= 2;
  const GateResult result =
      gate_of({timed_record("a", 1000), timed_record("b", 1000)}, {timed_record("a", 1200), other});
  EXPECT_EQ(result.outcome, GateOutcome::failed);
}

TEST(Gate, AnotherSetupIsRefusedNamingItsKeysUnlessTheyMayDiffer) {
  std::vector<Invocation> candidate = side_of(steady);
  for (Invocation& one : candidate) {
    for (auto& [key, value] : one.setup.decisive) {
      if (key == "device.oneDNN") value = "3.7.1";
    }
  }
  const GateResult refused = run_gate(side_of(steady), candidate, {});
  EXPECT_EQ(refused.outcome, GateOutcome::not_comparable);
  EXPECT_EQ(refused.why, "the set-ups differ: device.oneDNN");
  ASSERT_EQ(refused.refused.size(), 1U);
  EXPECT_TRUE(refused.cases.empty());
  GateOptions options;
  options.allowed_differences = {"device.oneDNN"};
  const GateResult allowed = run_gate(side_of(steady), candidate, options);
  EXPECT_EQ(allowed.outcome, GateOutcome::passed);
  EXPECT_EQ(allowed.allowed.size(), 1U);
  options.allowed_differences = {"device.onednn"};
  EXPECT_THAT(refusal(side_of(steady), candidate, options),
              HasSubstr("no report has 'device.onednn'; they have: arithmetic, build_type"));
}

TEST(Gate, OneReportOfASideFromElsewhereIsRefusedToo) {
  std::vector<Invocation> mixed = side_of(steady);
  mixed[2].setup.decisive[1].second = "B Processor";
  EXPECT_EQ(run_gate(mixed, side_of(steady), {}).outcome, GateOutcome::not_comparable);
  EXPECT_EQ(run_gate(side_of(steady), mixed, {}).outcome, GateOutcome::not_comparable);
}

TEST(Gate, NoiseOfAnotherSetupIsRefused) {
  Noise noise = noise_of(side_of({1000, 1001, 1002, 1003, 1004}), "now");
  GateOptions options;
  options.noise = &noise;
  EXPECT_EQ(run_gate(side_of({1000}), side_of({1001}), options).outcome, GateOutcome::passed);
  noise.setup.decisive[1].second = "B Processor";
  EXPECT_EQ(run_gate(side_of({1000}), side_of({1001}), options).outcome, GateOutcome::not_comparable);
}

TEST(Gate, OneRunASideWithoutNoiseConcludesNothing) {
  const GateResult result = run_gate(side_of({1000}), side_of({1050}), {});
  EXPECT_EQ(result.outcome, GateOutcome::inconclusive);
  EXPECT_THAT(result.cases[0].reason, HasSubstr("about 2 more runs a side would settle it, or a calibration"));
}

TEST(Gate, FiveBaselineRunsAreACalibration) {
  const std::vector<double> five{1000, 1001, 999, 1000.5, 999.5};
  EXPECT_EQ(run_gate(side_of(five), side_of({1002}), {}).outcome, GateOutcome::passed);
  EXPECT_EQ(run_gate(side_of(five), side_of({1100}), {}).outcome, GateOutcome::failed);
  EXPECT_EQ(run_gate(side_of({1000, 1001, 999, 1000.5}), side_of({1002}), {}).outcome, GateOutcome::inconclusive);
}

TEST(Gate, StrictLetsNothingInconclusiveThrough) {
  CaseRecord few = timed_record("b", 1000);
  few.rounds.resize(4);
  const std::vector<CaseRecord> cases{timed_record("a", 1000), few};
  EXPECT_EQ(gate_of(cases, cases).outcome, GateOutcome::passed);
  GateOptions options;
  options.strict = true;
  EXPECT_EQ(gate_of(cases, cases, options).outcome, GateOutcome::inconclusive);
}

TEST(Gate, NothingMeasuredOnBothSidesIsNoPass) {
  EXPECT_EQ(gate_of({}, {}).outcome, GateOutcome::inconclusive);
  EXPECT_EQ(gate_of({}, {}).why, "no case was measured on both sides");
  EXPECT_EQ(gate_of({}, {timed_record("a", 1000)}).outcome, GateOutcome::inconclusive);
}

TEST(Gate, ABaselineWithAnInjectedSlowdownIsRefusedAndACandidateWithOneIsTold) {
  std::vector<Invocation> slowed = side_of(slower);
  slowed[1].injected = "gemm=25%";
  EXPECT_THAT(refusal(slowed, side_of(steady)),
              HasSubstr("1.json was measured with an injected fault, gemm=25%, and cannot be a baseline"));
  const GateResult result = run_gate(side_of(steady), slowed, {});
  EXPECT_EQ(result.outcome, GateOutcome::failed);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("1.json has an injected fault: gemm=25%")));
}

TEST(Gate, OneReportTwiceIsNotTwoRuns) {
  std::vector<Invocation> twice = side_of(steady);
  twice.push_back(twice[0]);
  EXPECT_THAT(refusal(twice, side_of(steady)), HasSubstr("--baseline: 0.json and 0.json are one report"));
  EXPECT_THAT(refusal(side_of(steady), twice), HasSubstr("--candidate"));
  for (Invocation& one : twice) one.id.clear();  // as before schema 1.3: compared by times
  EXPECT_THAT(refusal(twice, side_of(steady)), HasSubstr("are one report"));
  twice.back().cases[0].run->log_median += 1e-9;
  EXPECT_EQ(refusal(twice, side_of(steady)), "accepted");
}

TEST(Gate, APartialReportIsToldAndItsSkippedCasesAreLost) {
  std::vector<Invocation> partial = side_of(steady);
  partial[0].complete = false;
  partial[0].cases[0].run.reset();
  partial[0].cases[0].verdict = Verdict::skipped;
  const GateResult result = run_gate(side_of(steady), partial, {});
  EXPECT_EQ(result.outcome, GateOutcome::failed);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("0.json is partial")));
}

TEST(Gate, AShiftOfTheWholeMachineIsTold) {
  std::vector<CaseRecord> before, after;
  for (int i = 0; i < 20; ++i) {
    before.push_back(timed_record("w" + std::to_string(i), 1000));
    after.push_back(timed_record("w" + std::to_string(i), 1020));
  }
  EXPECT_THAT(gate_of(before, after).warnings,
              ElementsAre(HasSubstr("the median case is +2.0% in time, 100% of cases")));
}

}  // namespace
}  // namespace gpubench

#include "harness/report/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ConsoleStyle plain{};

TEST(ResultLine, HoldsVerdictRateTimeIntervalErrorWorkloadRecipeAndLabel) {
  CaseRecord record = sample_record();
  record.summary.flags.clear();
  // 3000.5 ns, interval 2900.25 to 3100.125: half width 99.9375 / 3000.5 = 3.3%
  EXPECT_EQ(result_line(record, plain), "PASS    21.8 GFLOP/s 3.00 us  3.3%  0.25  square bf16/warm  a label\n");
}

TEST(Results, TellTheShareOfThePeakOrOfTheBestInAColumn) {
  const std::vector<CaseRecord> records{sample_record(), sample_without_run(Verdict::skipped, "large")};
  const std::string peak = result_rows(records, plain, {ShareColumn::of_peak});
  EXPECT_THAT(peak, ::testing::AllOf(HasSubstr("rate % peak    time"), HasSubstr("21.8 GFLOP/s  54.6% 3.00 us"),
                                     HasSubstr("SKIPPED            -      -       -     -     -  forward f32\n")));
  const std::string best = result_rows(records, plain, {ShareColumn::of_best});
  EXPECT_THAT(best, ::testing::AllOf(HasSubstr("rate % best    time"), HasSubstr("21.8 GFLOP/s  87.5% 3.00 us")));
  EXPECT_THAT(result_rows(records, plain), Not(HasSubstr("% peak")));
}

// 42 columns before the case: 20 + 1 + 7 + 1 + 5 + 1 + 5 + 2; the name ends at column 53.
TEST(Results, ALongLabelIsCutAndStandsBelowWhereThereIsNoRoom) {
  CaseRecord record = sample_without_run(Verdict::unsupported, "");
  record.c.label = "gpt2-124m qkv";
  const auto line = [&](int width, bool utf8) { return result_line(record, {.utf8 = utf8, .width = width}); };
  const std::string id = "\n    conv/forward/n=1/f32/x1\n";
  EXPECT_THAT(line(0, false), HasSubstr("  forward f32  gpt2-124m qkv" + id));
  EXPECT_THAT(line(68, false), HasSubstr("  forward f32  gpt2-124m qkv" + id));
  EXPECT_THAT(line(65, false), HasSubstr("  forward f32  gpt2-12..." + id));
  EXPECT_THAT(line(65, true), HasSubstr("  forward f32  gpt2-124m\u2026" + id));
  EXPECT_THAT(line(60, false), HasSubstr("  forward f32\n    gpt2-124m qkv" + id));
}

// 150 samples of 1 to 150 us for 2 runs each: per run 0.5 to 75 us. Type 7: the p-quantile is at 1 + 149 p.
TEST(Results, VerboseOnesTellPercentilesAndNoP99OfFewerThanAHundredSamples) {
  CaseRecord record = sample_record();
  record.batch = 2;
  record.rounds.assign(1, {});
  for (int i = 1; i <= 150; ++i) record.rounds[0].times.device_ns.push_back(1000.0 * i);
  EXPECT_THAT(result_line(record, {.verbosity = 1}),
              HasSubstr("p50 37.8 us, p90 67.5 us, p99 74.3 us (of 150 samples)\n"));
  record.rounds[0].times.device_ns.resize(99);
  EXPECT_THAT(result_line(record, {.verbosity = 1}), HasSubstr(", p99 - (of 99 samples)\n"));
  EXPECT_THAT(result_line(record, plain), Not(HasSubstr("p50")));
}

TEST(Results, VerboseOnesTellPeakClockBestAndEnergy) {
  CaseRecord record = sample_record();
  record.choice = Choice::remembered;
  record.derived.energy_per_work_j = 2e-12;  // 0.5 TFLOP per joule
  const std::string text = result_rows({&record, 1}, {.verbosity = 1});
  EXPECT_THAT(text, HasSubstr("MFU: 54.6% of bf16's peak (Made Up, sourced: a page), 72.8% of it at the clock of the "
                              "rounds, 87.5% of the best here (gemm/square/m=128/bf16/x1)\n"));
  EXPECT_THAT(text, HasSubstr("took 0.0025 J per run, 500 GFLOP/J\n"));
  EXPECT_THAT(text, HasSubstr("by onednn:brg:avx512_core_amx_bf16 (remembered)\n"));
}

TEST(ResultLine, AppendsFlagsAndSaysWhyACaseDidNotPass) {
  EXPECT_THAT(result_line(sample_record(), plain), HasSubstr("  square bf16/warm  a label  [noisy, drift]\n"));
  EXPECT_EQ(result_line(sample_without_run(Verdict::skipped, "needs 34 GB, 20 GB are free"), plain),
            "SKIPPED            -       -     -     -  forward f32\n"
            "    conv/forward/n=1/f32/x1\n"
            "    needs 34 GB, 20 GB are free\n");
}

TEST(ResultLine, LongIdsAreNeverCut) {
  CaseRecord record = sample_record();
  record.id = "conv/" + std::string(190, 'x') + "/f32/x1";
  EXPECT_THAT(result_line(record, {.verbosity = 1, .width = 80}), HasSubstr("\n    " + record.id + "\n"));
}

TEST(ResultLine, WordsCarryTheMeaningWithAndWithoutColour) {
  const ConsoleStyle coloured{.color = true};
  const std::string line = result_line(sample_record(Verdict::fail), coloured);
  EXPECT_THAT(line, HasSubstr("\x1b[1;31mFAIL"));
  EXPECT_THAT(result_line(sample_record(Verdict::fail), plain), Not(HasSubstr("\x1b")));
  EXPECT_THAT(result_line(sample_record(Verdict::fail), plain), HasSubstr("FAIL"));
}

TEST(ResultLine, HostileTextCannotSteerATerminal) {
  CaseRecord record = sample_record(Verdict::error);
  record.reason = "worker said \x1b]0;owned\x07\nVERDICT  PASS";
  record.parity.ops[1].implementation = "lib\x1b[2J";
  record.parity.ops[1].reason = "\x9b";
  const std::string text = result_rows({&record, 1}, {.verbosity = 1}) + failures_text({&record, 1}, plain);
  EXPECT_THAT(text, ::testing::AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\nVERDICT")),
                                     HasSubstr("\\x1b]0;owned\\x07\\x0aVERDICT  PASS")));
}

TEST(ResultHeader, IsAsciiUnlessTheTerminalTakesUtf8) {
  EXPECT_THAT(result_header(plain), HasSubstr("+-95%"));
  EXPECT_THAT(result_header({.utf8 = true}), HasSubstr("\xc2\xb1"
                                                       "95%"));
}

TEST(Failures, NameOpElementValuesBoundHowManyAndTheRerunLine) {
  const CaseRecord record = sample_record(Verdict::fail);
  EXPECT_EQ(
      failures_text({&record, 1}, plain),
      "f1  FAIL  gemm/square/m=64,n=32,k=16/bf16/warm/x1\n"
      "    op      gemm.forward (gemm), recheck of the timed launch, by onednn:brg:avx512_core_amx_bf16\n"
      "    worst   c[0, 17]  got -1.84375  want -1.8390312  off by 0.00472  bound 0.0012  (3.5 of the allowance)\n"
      "    wrong   3 of 64 judged elements (4,096 in all): 3 of 64 elements outside their bound, first at c[0, 17]\n"
      "    where   c: all 3 are in [0-1, 17]\n"
      "    seed    9223372036854775807\n"
      "    rerun   gpubench run --filter '^gemm/square/m=64,n=32,k=16/bf16/warm/x1$' --tier standard --seed 42\n"
      "\n");
}

TEST(Failures, SayOfEachPhaseWhatWasLookedAt) {
  CaseRecord record = sample_record(Verdict::fail);
  for (OpParity& op : record.parity.ops) op.phase = "timed";
  EXPECT_THAT(failures_text({&record, 1}, plain), HasSubstr("gemm.forward (gemm), output of a timed round, by"));
  for (OpParity& op : record.parity.ops) op.phase = "check";
  EXPECT_THAT(failures_text({&record, 1}, plain), HasSubstr("gemm.forward (gemm), check of the op alone, by"));
}

TEST(Failures, ShowTheOpThatTheRecordNamesAndCountTheOthers) {
  CaseRecord record = sample_record(Verdict::fail);
  record.parity.ops[0].verdict = Verdict::fail;
  record.parity.ops[0].label = "other";
  record.parity.ops[0].error_over_bound = 99.0;
  const std::string text = failures_text({&record, 1}, plain);
  EXPECT_THAT(text, HasSubstr("op      gemm.forward"));
  EXPECT_THAT(text, HasSubstr("also    1 more op checks did not pass"));
}

TEST(Failures, ACrashHasItsReasonAndRerunLine) {
  CaseRecord record = sample_without_run(Verdict::error, "worker ended by signal 9 (Killed)");
  record.rerun = "gpubench run --filter x";
  const std::string text = failures_text({&record, 1}, plain);
  EXPECT_THAT(text, HasSubstr("f1  ERROR  conv/forward/n=1/f32/x1\n    reason  worker ended by signal 9 (Killed)\n"));
  EXPECT_THAT(text, HasSubstr("rerun   gpubench run --filter x\n"));
}

TEST(Failures, AreEmptyWhereNothingWentWrong) {
  const std::vector<CaseRecord> records{sample_record(), sample_without_run(Verdict::skipped, "large"),
                                        sample_without_run(Verdict::unsupported, "no")};
  EXPECT_EQ(failures_text(records, plain), "");
}

TEST(SummaryTable, CountsPerSuiteWithTheBestRateAndTheWorstError) {
  const std::vector<CaseRecord> records{sample_record(), sample_record(Verdict::fail),
                                        sample_without_run(Verdict::skipped, "large")};
  EXPECT_EQ(summary_text(records, plain),
            "suite  pass  fail  error  skipped          best rate  worst err/bound\n"
            "gemm      1     1      0        0  21.8 GFLOP/s bf16             3.50\n"
            "conv      0     0      0        1                  -                -\n");
}

TEST(VerdictLines, SayTheWorstVerdictTheCountsThePathAndTheCode) {
  const std::vector<CaseRecord> records{sample_record(), sample_record(Verdict::fail)};
  const std::string text = verdict_text(records, {1, "a verdict failed", "out/report.json", true, 12.0}, plain);
  EXPECT_EQ(text,
            "VERDICT  FAIL  1 pass, 1 fail of 2 cases in 12.0 s (check 250 ms, time 1.00 s)\n"
            "report   out/report.json\n"
            "exit 1   a verdict failed\n");
  Ending with_page{0, "all that ran passed", "out/report.json"};
  with_page.page_path = "out/report.html";
  EXPECT_THAT(verdict_text(records, with_page, plain),
              HasSubstr("\npage     out/report.html\nreport   out/report.json\nexit 0 "));
}

TEST(VerdictLines, AnInterruptedOrEmptyRunIsNoPass) {
  const std::vector<CaseRecord> passed{sample_record()};
  EXPECT_THAT(verdict_text(passed, {130, "interrupted", "", false, 1.0}, plain), HasSubstr("VERDICT  INCOMPLETE"));
  const std::vector<CaseRecord> skipped{sample_without_run(Verdict::skipped, "large")};
  EXPECT_THAT(verdict_text(skipped, {5, "nothing ran", "", true, 1.0}, plain), HasSubstr("VERDICT  NOTHING RAN"));
}

TEST(VerdictLines, APassWithUntriedCallsIsAPartAndListsTenOps) {
  const std::vector<CaseRecord> records{sample_record()};
  Ending ending;
  ending.untried = {"gemm: 2 calls in f64"};
  EXPECT_THAT(verdict_text(records, ending, plain),
              AllOf(HasSubstr("VERDICT  PASS (part)  1 pass"), HasSubstr("\nuntried  gemm: 2 calls in f64\nexit 0")));
  ending.untried.resize(12, "scale: 1 call in f64");
  EXPECT_THAT(verdict_text(records, ending, plain), HasSubstr("         and 2 more ops, in the report\n"));
  EXPECT_THAT(verdict_text({}, ending, plain), Not(HasSubstr("(part)")));
}

TEST(VerdictLines, AnUnverifiedRunSaysSoLoudly) {
  const std::vector<CaseRecord> records{sample_record(Verdict::unverified)};
  const std::string text = verdict_text(records, {0, "all that ran passed", "", true, 1.0}, plain);
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("VERDICT  UNVERIFIED"), HasSubstr("NOTHING WAS VERIFIED")));
}

}  // namespace

namespace {

using ::testing::HasSubstr;

CaseRecord step(int ranks, RankSpread spread) {
  CaseRecord record;
  record.c.suite = "transformer";
  record.c.workload = "block";
  record.c.dims = {{"b", 4}};
  record.c.recipe = "bf16";
  record.c.ranks = ranks;
  record.id = record.c.id();
  record.verdict = Verdict::pass;
  record.derived.headline = 1500.0;
  record.derived.headline_unit = "tokens/s";
  record.derived.ranks = spread;
  record.summary.rounds = 3;
  record.summary.median_ns = 100.0;
  record.summary.ci95_low_ns = 98.0;
  record.summary.ci95_high_ns = 102.0;
  return record;
}

TEST(ScalingText, TellsEachStepOfSeveralRanksWithWhatIsKnownOfIt) {
  RankSpread known{.units = 4, .straggler = 0.031};
  known.efficiency = 0.873;
  known.exposed_communication = 0.052;
  const std::vector<CaseRecord> records{step(2, known), step(4, {.units = 8, .straggler = 0.5})};
  const std::string text = scaling_text(records);
  EXPECT_THAT(text, HasSubstr("case                     rate  efficiency  exposed  slowest\n"));
  EXPECT_THAT(text, HasSubstr("block bf16 x2  1.50 ktokens/s       87.3%     5.2%    +3.1%\n"));
  EXPECT_THAT(text, HasSubstr("block bf16 x4  1.50 ktokens/s           -        -   +50.0%\n"));
  EXPECT_THAT(scaling_text(records, {.verbosity = 1}), HasSubstr("\ntransformer/block/b=4/bf16/x2  1.50"));
  EXPECT_THAT(scaling_text(records, {.width = 40}), HasSubstr("\nblock bf16 x2\n  rate 1.50 ktokens/s  efficiency"));
}

/// Two of three ranks exchange, at `ns` each way.
CaseRecord exchange(std::vector<int> partners, double ns) {
  CaseRecord record = step(3, RankSpread{.partners = partners});
  record.c.workload = "pairs";
  record.c.dims = {{"bytes", 1000}, {"round", partners[0] + partners[1]}};
  record.derived.collective = CollectiveRates{.message_bytes = 1000.0};
  RoundRecord round;
  round.times.ranks = std::vector<RankTimes>(3, {{ns}});
  record.rounds.assign(5, round);
  return record;
}

TEST(LinksText, TellsTheMiddleAndTheSlowestLinkAndWhoIsLate) {
  const std::vector<CaseRecord> even{exchange({1, 0, 2}, 500.0), exchange({2, 1, 0}, 501.0),
                                     exchange({0, 2, 1}, 502.0)};
  EXPECT_THAT(
      links_text(even),
      HasSubstr("\ntransformer/pairs/bytes=1000/bf16/x3\n  3 links, the median 500 ns (2.00 GB/s each way), the "
                "slowest 502 ns (1.99 GB/s each way), between ranks 1 and 2\n  none is certainly behind\n"));
  const std::vector<CaseRecord> late{exchange({1, 0, 2}, 500.0), exchange({2, 1, 0}, 600.0),
                                     exchange({0, 2, 1}, 500.0)};
  EXPECT_THAT(links_text(late), HasSubstr("  ranks 0 and 2: 20.0% behind, in 5 of 5 rounds\n"));
  EXPECT_THAT(links_text(late, {}, std::vector<RankPlace>{{"a", ""}, {"a", ""}, {"b\x1b", ""}}),
              HasSubstr("  ranks 0 (a) and 2 (b\\x1b): 20.0% behind, in 5 of 5 rounds\n"));
  EXPECT_EQ(links_text({late.data(), 0}), "");
}

TEST(ScalingText, SharesOfAnUnreliableTimingAreUnknownAndItsRateIsMarked) {
  RankSpread meaningless{.units = 4};
  meaningless.efficiency = 5.72;
  meaningless.exposed_communication = -0.71;
  CaseRecord noisy = step(2, meaningless);
  noisy.summary.ci95_low_ns = 40.0;
  noisy.summary.ci95_high_ns = 160.0;
  const std::string text = scaling_text({&noisy, 1});
  EXPECT_THAT(text, HasSubstr("~1.50 ktokens/s     unknown  unknown    +0.0%\n"));
}

// Unreliable one-rank time: unknown efficiency. No one-rank time: no efficiency.
TEST(ScalingText, AnEfficiencyAgainstAnUnreliableTimingIsUnknownAndAgainstNoneADash) {
  CaseRecord alone = step(1, {});
  alone.derived.ranks.reset();
  const std::vector<CaseRecord> both{alone, step(2, {.units = 4})};
  EXPECT_THAT(scaling_text(both), HasSubstr("unknown        -    +0.0%\n"));
  EXPECT_THAT(scaling_text({&both[1], 1}), HasSubstr(" -        -    +0.0%\n"));
}

TEST(ScalingText, IsEmptyForOneRankCollectivesVirtualRanksAndFailures) {
  CaseRecord alone = step(1, {});
  alone.derived.ranks.reset();
  CaseRecord collective = step(2, {});
  collective.derived.collective = CollectiveRates{};
  CaseRecord on_one_gpu = step(2, {});
  on_one_gpu.c.modes = {"virtual"};
  CaseRecord failed = step(2, {});
  failed.verdict = Verdict::fail;
  EXPECT_EQ(scaling_text(std::vector{alone, collective, on_one_gpu, failed}), "");
}

}  // namespace

}  // namespace gpubench

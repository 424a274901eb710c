#include "harness/report/record_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/report/console.h"
#include "harness/report/export.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ConsoleStyle unadorned{};

// Median 21.8 GFLOP/s; half of the interval is 1200 of 3000.5 ns, 40%. In every round some task waited for a processor
// for this share of the time.
CaseRecord unsure_record(std::optional<double> pressure) {
  CaseRecord record = sample_record();
  record.summary.ci95_low_ns = 1800.0;
  record.summary.ci95_high_ns = 4200.0;
  for (RoundRecord& round : record.rounds) {
    round.telemetry = RoundTelemetry{};
    round.telemetry->cpu_pressure = pressure;
  }
  return record;
}

TEST(ReliabilityText, TheVerdictCountsUnreliableTimingsAndSaysThatTheProcessorsWereBusy) {
  const std::vector<CaseRecord> records{unsure_record(0.82), sample_record(), unsure_record(0.86), unsure_record(0.5),
                                        sample_without_run(Verdict::skipped, "large")};
  EXPECT_EQ(
      unreliable_text(records),
      "3 of 4 timings unreliable: the processors were busy (some task waited for one 82% of the time); stop other "
      "work and run again");
  EXPECT_EQ(
      verdict_text(records, {0, "all that ran passed", "", true, 12.0}, unadorned),
      "VERDICT  PASS (correct)  4 pass, 1 skipped of 5 cases in 12.0 s (check 500 ms, time 2.00 s)\n"
      "         3 of 4 timings unreliable: the processors were busy (some task waited for one 82% of the time); stop "
      "other work and run again\n"
      "exit 0   all that ran passed\n");
  Report report;
  report.cases = records;
  report.run.complete = true;
  EXPECT_THAT(
      markdown_text(report, 100000),
      AllOf(StartsWith("### gpubench: PASS (correct); 3 of 4 timings unreliable"), HasSubstr("| &#126;21.8 GFLOP")));
}

TEST(ReliabilityText, WhereNothingElseRanMoreRoundsAreTheAdvice) {
  for (const std::optional<double> pressure : {std::optional(0.05), std::optional<double>()}) {
    const std::vector<CaseRecord> records{unsure_record(pressure)};
    EXPECT_EQ(unreliable_text(records),
              "1 of 1 timing unreliable: rounds differ too much; --preset normal runs more of them");
  }
}

TEST(ReliabilityText, OnlyAPassIsCalledCorrect) {
  CaseRecord failed = sample_record(Verdict::fail);
  const std::vector<CaseRecord> records{failed, unsure_record(0.9)};
  EXPECT_THAT(verdict_text(records, {1, "a verdict failed", "", true, 1.0}, unadorned),
              AllOf(StartsWith("VERDICT  FAIL  1 pass, 1 fail of 2 cases"),
                    HasSubstr("\n         1 of 1 timing unreliable: the processors were busy")));
  EXPECT_EQ(verdict_with_reliability("PASS", {}), "PASS");
}

TEST(ReliabilityText, AnUnreliableRateIsMarkedAndNoBest) {
  CaseRecord fast = unsure_record(0.9);
  fast.derived.headline = 9e12;
  const std::vector<CaseRecord> records{fast, sample_record()};
  EXPECT_THAT(result_line(fast, unadorned), HasSubstr(" ~9.00 TFLOP/s "));
  EXPECT_THAT(result_line(records[1], unadorned), Not(HasSubstr("~")));
  EXPECT_THAT(summary_text(records, unadorned), HasSubstr("  21.8 GFLOP/s bf16  "));
  EXPECT_THAT(summary_text({&fast, 1}, unadorned), HasSubstr("     0      0          -             0.25"));
}

TEST(DetailText, AStepIsToldByKindOfOpAndByLayerWithItsMemory) {
  CaseRecord record = sample_record();
  for (const char* op : {"block0.norm", "block0.norm.backward"})
    record.derived.breakdown.push_back({op, "layer_norm", "own", 250.0, 0.085, 500, 3584});
  const std::string text = result_line(record, {.verbosity = 1});
  // 65536 FLOP in 2500.5 ns are 26.2 GFLOP/s, 65.5% of the peak of 4e10; the layer is the label's first part.
  EXPECT_THAT(text, HasSubstr("2.50 us  83.0%    1  65.5 kFLOP  7.17 kB  26.2 GFLOP/s  65.5%  gemm\n"));
  EXPECT_THAT(text, HasSubstr("500 ns  17.0%    2  1.00 kFLOP  7.17 kB  2.00 GFLOP/s   5.0%  block0\n"));
  EXPECT_THAT(text, HasSubstr("memory: weights 4.10 kB, optimizer state 8.19 kB"));
  EXPECT_THAT(text, HasSubstr("MFU: 54.6% of bf16's peak (Made Up, sourced: a page)"));
}

TEST(ArithmeticText, SaysWhatWasReadAndLeavesOutWhatWasNot) {
  EXPECT_EQ(
      arithmetic_text(sample_record().parity.arithmetic->front()),
      "Hopper, 8-bit, emptied every 128 products; running sums of 14 bits, cut; 32 products at once, to 13 bits "
      "behind the largest; emptied every 128 products; partial sums in bf16; inputs exact; products fused; stored "
      "nearest even; denormals flushed: a, output; NaN and infinity overflow saturates; added 32 at once, in "
      "order; a note");
  PlanArithmetic little;
  little.inputs = "exact";
  EXPECT_EQ(arithmetic_text(little), "inputs exact");
  const std::string text = result_line(sample_record(), {.verbosity = 1});
  EXPECT_THAT(text, HasSubstr("arithmetic of gemm.forward and 2 more (gemm): Hopper, 8-bit"));
  EXPECT_THAT(result_line(sample_record(), unadorned), Not(HasSubstr("arithmetic of")));
}

TEST(ReliabilityText, SharesThatSayNothingAreUnknownInTheDetails) {
  CaseRecord record = unsure_record(0.9);
  record.derived.remainder = -18.06;
  record.derived.ranks->exposed_communication = -0.71;
  record.derived.ranks->efficiency = 5.72;
  const std::string text = result_line(record, {.verbosity = 1});
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("unknown  remainder"), HasSubstr("exposed communication unknown")));
  for (const char* number : {"1806", "-71", "5.72", "83.0%"}) EXPECT_THAT(text, Not(HasSubstr(number))) << number;
}

TEST(Legend, ExplainsTheFlagsAndVerdictsThatOccurAndNoOthers) {
  CaseRecord clean = sample_record();
  clean.summary.flags.clear();
  EXPECT_EQ(legend_text({&clean, 1}, unadorned), "");
  CaseRecord flagged = sample_record(Verdict::downgraded);
  flagged.summary.flags = {"severe", "rank 3 straggles", "noisy", "\x1b[2J"};
  const std::vector<CaseRecord> records{clean, flagged, flagged};
  const std::string text = legend_text(records, unadorned);
  EXPECT_THAT(text, ::testing::AllOf(
                        HasSubstr("\n[DOWNGRADED] an op computes in less than the declared precision: a probe read it"),
                        HasSubstr("\n[severe] more than 5% of the samples"), HasSubstr("\n[rank 3 straggles] "),
                        HasSubstr("\n[noisy] the 95% interval is wider than +-25%"), Not(HasSubstr("drift")),
                        Not(HasSubstr("\x1b"))));
  CaseRecord noisy = sample_record();
  EXPECT_NE(legend_text({&noisy, 1}, unadorned), "");
  EXPECT_EQ(legend_text({&noisy, 1}, {.quiet = true}), "");
  EXPECT_EQ(legend_text({&flagged, 1}, {.quiet = true}), text);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

// All flags that measuring sets.
TEST(Legend, KnowsEveryFlag) {
  for (const char* flag : {"noisy", "no interval", "severe", "drift", "throttled", "memory errors", "device errors",
                           "power capped", "clock off", "clock unknown", "invalid rounds", "above peak",
                           "injected slowdown", "injected error", "oversubscribed", "stragglers", "rank 12 straggles"})
    EXPECT_NE(meaning_of_flag(flag), "") << flag;
  EXPECT_EQ(meaning_of_flag("anything else"), "");
}

}  // namespace

namespace {

DeviceInfo device_of_kind(const char* kind, int units) {
  DeviceInfo device;
  device.kind = kind;
  device.units = units;
  return device;
}

TEST(DeviceText, UnitsAreCalledWhatTheyAre) {
  EXPECT_EQ(units_text(device_of_kind("cpu", 2)), "2 threads");
  EXPECT_EQ(units_text(device_of_kind("cpu", 1)), "1 thread");
  EXPECT_EQ(units_text(device_of_kind("cuda", 132)), "132 SMs");
  EXPECT_EQ(units_text(device_of_kind("sim", 1)), "1 unit");
}

// By the OpenMP specifications: 4.5 is of November 2015, 5.0 of November 2018.
TEST(DeviceText, OpenMpIsTheReleaseNotItsDate) {
  EXPECT_EQ(library_text("openmp", "201511"), "OpenMP 4.5");
  EXPECT_EQ(library_text("openmp", "201811"), "OpenMP 5.0");
  EXPECT_EQ(library_text("openmp", "299901"), "OpenMP 299901");
  EXPECT_EQ(library_text("onednn", "2.6.3"), "oneDNN 2.6.3");
  EXPECT_EQ(library_text("onednn", "2.6.3 (N/A)"), "oneDNN 2.6.3");
  EXPECT_EQ(library_text("onednn", "3.7.0 (1b2c3d4)"), "oneDNN 3.7.0 (1b2c3d4)");
  DeviceInfo device;
  EXPECT_EQ(libraries_text(device), "");
  device.libraries = {{"onednn", "2.6.3"}, {"openmp", "201511"}};
  EXPECT_EQ(libraries_text(device), "oneDNN 2.6.3, OpenMP 4.5");
}

}  // namespace

}  // namespace gpubench

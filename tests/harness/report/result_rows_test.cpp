#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/console.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace result_rows_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CaseRecord with_rate(double rate, const std::string& unit) {
  CaseRecord record = sample_record();
  record.derived.headline = rate;
  record.derived.headline_unit = unit;
  return record;
}

CaseRecord square(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& label = "square") {
  CaseRecord record = sample_record();
  record.summary.flags.clear();
  record.c.dims = {{"m", m}, {"n", n}, {"k", k}};
  record.c.modes.clear();
  record.c.label = label;
  record.id = record.c.id();
  return record;
}

RowLayout layout_of(const std::vector<CaseRecord>& records, const ConsoleStyle& style = {}) {
  std::vector<Case> cases;
  for (const CaseRecord& record : records) cases.push_back(record.c);
  return row_layout("cpu", cases, style);
}

TEST(RowLayout, RatesOfAUnitHaveOnePrefixWhateverTheirSize) {
  const RowLayout cpu{ShareColumn::of_best, "cpu"}, gpu{ShareColumn::of_peak, "cuda"};
  EXPECT_EQ(rate_cell(with_rate(1.27e12, "FLOP/s"), cpu), "1270 GFLOP/s");
  EXPECT_EQ(rate_cell(with_rate(2.6e6, "FLOP/s"), cpu), "0.00260 GFLOP/s");
  EXPECT_EQ(rate_cell(with_rate(2.6e5, "FLOP/s"), cpu), "<0.001 GFLOP/s");
  EXPECT_EQ(rate_cell(with_rate(1.27e12, "FLOP/s"), gpu), "1.27 TFLOP/s");
  EXPECT_EQ(rate_cell(with_rate(3.35e12, "B/s"), gpu), "3350 GB/s");
  EXPECT_EQ(rate_cell(with_rate(25e9, "bytes/s"), gpu), "25.0 Gbytes/s");
  EXPECT_EQ(rate_cell(with_rate(1.2e6, "tokens/s"), gpu), "1200 ktokens/s");
  EXPECT_EQ(rate_cell(with_rate(1.2e6, "tokens/s"), {}), "1.20 Mtokens/s");
}

TEST(RowLayout, TheSummaryHasThePrefixOfTheRows) {
  const std::vector<CaseRecord> records{with_rate(1.27e12, "FLOP/s"), with_rate(7e6, "FLOP/s")};
  EXPECT_THAT(summary_text(records, {}, {ShareColumn::of_best, "cpu"}), HasSubstr("  1270 GFLOP/s bf16  "));
}

TEST(RowLayout, RowsThatWouldReadTheSameShowDistinguishingSizes) {
  const std::vector<CaseRecord> records{square(512, 512, 512), square(1024, 1024, 1024), square(7, 8, 9, "odd")};
  const std::string rows = result_rows(records, {}, layout_of(records));
  EXPECT_THAT(rows, ::testing::AllOf(HasSubstr("  square bf16 m=512  square\n"),
                                     HasSubstr("  square bf16 m=1024  square\n"), HasSubstr("  square bf16  odd\n")));
  // m separates two pairs, n the cases of each pair; k is the same in all.
  const std::vector<CaseRecord> four{square(1, 1, 5), square(1, 2, 5), square(2, 1, 5), square(2, 2, 5)};
  EXPECT_THAT(result_rows(four, {}, layout_of(four)), HasSubstr("  square bf16 m=2,n=1  square\n"));
}

TEST(RowLayout, LabelsThatDifferOnlyWhereTheyAreCutCountAsTheSame) {
  const std::string start(60, 'l');
  const std::vector<CaseRecord> records{square(1, 1, 1, start + "1"), square(2, 1, 1, start + "2")};
  EXPECT_THAT(layout_of(records).sizes, IsEmpty());
  const ConsoleStyle style{.width = 100};
  const std::string rows = result_rows(records, style, layout_of(records, style));
  EXPECT_THAT(rows, ::testing::AllOf(HasSubstr("  square bf16 m=1  lll"), HasSubstr("  square bf16 m=2  lll")));
}

TEST(RowLayout, ContendersModesAndRanksDistinguishRowsWithoutSizes) {
  CaseRecord own = square(1, 1, 1), two = own, warm = own;
  own.c.contender = "mine";
  two.c.ranks = 2;
  warm.c.modes = {"warm", "in_place"};
  const std::vector<CaseRecord> records{square(1, 1, 1), own, two, warm};
  const RowLayout layout = layout_of(records);
  EXPECT_THAT(layout.sizes, IsEmpty());
  const std::string rows = result_rows(records, {}, layout);
  for (const char* name : {"  square bf16  square\n", "  square bf16 @mine  square\n", "  square bf16 x2  square\n",
                           "  square bf16/warm/in_place  square\n"})
    EXPECT_THAT(rows, HasSubstr(name));
}

TEST(RowLayout, IdsStandBelowRowsThatStillReadTheSame) {
  const CaseRecord record = square(1, 1, 1);
  RowLayout layout;
  EXPECT_THAT(result_line(record, {}, layout), Not(HasSubstr(record.id)));
  layout.alike.insert(record.key());
  EXPECT_THAT(result_line(record, {}, layout), HasSubstr("  square\n    " + record.id + "\n"));
}

TEST(ResultIds, StandBelowEveryRowThatDidNotPassAndBelowAllWithV) {
  const CaseRecord passed = sample_record();
  EXPECT_THAT(result_line(passed, {}), Not(HasSubstr(passed.id)));
  EXPECT_THAT(result_line(passed, {.verbosity = 1}), HasSubstr("\n    " + passed.id + "\n    "));
  for (const Verdict verdict : {Verdict::fail, Verdict::downgraded, Verdict::not_proven, Verdict::unverified,
                                Verdict::unsupported, Verdict::skipped, Verdict::error}) {
    CaseRecord record = sample_record(verdict);
    record.reason = "why";
    EXPECT_THAT(result_line(record, {}), HasSubstr("\n    " + record.id + "\n    why\n")) << name(verdict);
  }
}

TEST(RowSequence, TitlesComeOnceAndASuiteBeforeItsRows) {
  const std::vector<CaseRecord> records{square(1, 1, 1), square(2, 1, 1),
                                        sample_without_run(Verdict::skipped, "large")};
  EXPECT_EQ(result_rows(records, {}),
            "verdict         rate    time +-95% err/bound  case\n"
            "gemm\n"
            "PASS    21.8 GFLOP/s 3.00 us  3.3%  0.25  square bf16  square\n"
            "PASS    21.8 GFLOP/s 3.00 us  3.3%  0.25  square bf16  square\n"
            "conv\n"
            "SKIPPED            -       -     -     -  forward f32\n"
            "    conv/forward/n=1/f32/x1\n"
            "    large\n");
  EXPECT_THAT(result_rows(records, {.quiet = true}), Not(HasSubstr("gemm\n")));
}

// 3000.5 ns, from 1 to 9000 ns: 4500 of 3000.5
TEST(ResultRow, AnIntervalAboveAHundredPercentSaysOnlyThat) {
  CaseRecord record = sample_record();
  record.summary.ci95_low_ns = 1.0;
  record.summary.ci95_high_ns = 9000.0;
  EXPECT_THAT(result_line(record, {}), HasSubstr(" 3.00 us >100%  0.25  "));
}

// "DOWNGRADED" and a rate exceed their column: the rest moves, and the label has less room.
TEST(ResultRow, ALongVerdictMovesTheRestOfItsRow) {
  EXPECT_THAT(result_line(sample_record(Verdict::downgraded), {.width = 100}),
              HasSubstr("DOWNGRADED 21.8 GFLOP/s 3.00 us  3.3%  3.50  square bf16/warm  a label  [noisy, drift]\n"));
}

}  // namespace result_rows_test
}  // namespace gpubench

#include "harness/report/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace calls_total_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

CaseRecord record(const char* suite, const char* recipe, double calls, double ns) {
  CaseRecord r;
  r.c.suite = suite;
  r.c.workload = "w";
  r.c.dims = {{"n", 1}};
  r.c.recipe = recipe;
  r.c.calls = calls;
  r.id = r.c.id();
  r.verdict = Verdict::pass;
  r.summary.rounds = 3;
  r.summary.samples = 30;
  r.summary.median_ns = ns;
  r.summary.ci95_low_ns = 0.9 * ns;
  r.summary.ci95_high_ns = 1.2 * ns;
  return r;
}

TEST(CallsTotal, IsTheSumOfCallsTimesMedianForEachRecipeAndSuite) {
  const std::vector<CaseRecord> records{record("gemm", "f32", 24, 1e6), record("gemm", "f32", 2, 3e6),
                                        record("gemm", "bf16", 24, 5e5), record("conv", "bf16", 4, 1e6)};
  const std::vector<CallsTotal> totals = calls_totals(records);
  ASSERT_EQ(totals.size(), 4);
  EXPECT_EQ(totals[0].suite + " " + totals[0].recipe, "gemm f32");
  EXPECT_DOUBLE_EQ(*totals[0].ns, 30e6);  // 24 x 1 ms + 2 x 3 ms
  EXPECT_DOUBLE_EQ(*totals[0].low_ns, 27e6);
  EXPECT_DOUBLE_EQ(*totals[0].high_ns, 36e6);
  EXPECT_EQ(time_of(totals[0]), "30.0 ms");
  EXPECT_EQ(explanation_of(totals[0]), "27.0 ms to 36.0 ms, 26 calls of 2 shapes");
  EXPECT_EQ(totals[3].suite + " " + totals[3].recipe, "all bf16");
  EXPECT_DOUBLE_EQ(*totals[3].ns, 16e6);
}

TEST(CallsTotal, IsNotThereWhereAShapeDidNotPass) {
  std::vector<CaseRecord> records{record("gemm", "f32", 24, 1e6), record("gemm", "f32", 2, 3e6)};
  records[1].verdict = Verdict::unsupported;
  const std::vector<CallsTotal> totals = calls_totals(records);
  ASSERT_EQ(totals.size(), 1);
  EXPECT_FALSE(totals[0].ns);
  EXPECT_EQ(time_of(totals[0]), "n/a");
  EXPECT_EQ(explanation_of(totals[0]),
            "26 calls of 2 shapes: 1 of 2 shapes has no time, the first, gemm/w/n=1/f32/x1, unsupported");
}

TEST(CallsTotal, OfUnsureTimingsIsMarked) {
  std::vector<CaseRecord> records{record("gemm", "f32", 1, 1e6)};
  records[0].summary.ci95_high_ns = 2e6;
  EXPECT_EQ(time_of(calls_totals(records)[0]), "~1.00 ms");
}

TEST(CallsTotal, WithoutAListThereIsNone) {
  std::vector<CaseRecord> records{record("gemm", "f32", 1, 1e6)};
  records[0].c.calls.reset();
  EXPECT_THAT(calls_totals(records), IsEmpty());
  Report report;
  report.cases = records;
  EXPECT_EQ(calls_totals_text(report, {}), "");
}

TEST(CallsTotal, TheEndOfARunListsMissingCalls) {
  Report report;
  report.cases = {record("gemm", "f32", 24, 1e6)};
  report.run.shapes =
      ShapesContext{"a.log", "ONEDNN_VERBOSE", {{"primitive reorder", 4, false}, {"without the bias", 1, true}}};
  const std::string text = calls_totals_text(report, {});
  EXPECT_THAT(text, HasSubstr("All calls of a.log, one after another"));
  EXPECT_THAT(text, HasSubstr("24.0 ms  21.6 ms to 28.8 ms, 24 calls of 1 shape\n"));
  EXPECT_THAT(text, HasSubstr("  4 calls left out: primitive reorder\n  1 call taken without the bias\n"));
}

}  // namespace calls_total_test
}  // namespace gpubench

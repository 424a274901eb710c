#include "harness/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;

// A product of 1e9 FLOP times `giga` in the made case's 1 ms: a rate of `giga` TFLOP/s.
CaseRecord product_at(double giga, std::int64_t n, const std::string& recipe = "f32") {
  return with_rate(made_case("matmul", {{"m", n}, {"n", n}, {"k", n}}, recipe), giga * 1e9, 1e6);
}

CaseRecord too_wide(CaseRecord record) {
  record.summary.ci95_high_ns = 2e6;
  return record;
}

DataTable table_of(std::vector<CaseRecord> cases) {
  const std::vector<Report> reports{made_report(std::move(cases))};
  return speed_table(sides_of(reports));
}

// sqrt(2 * 8) is 4. 10% below and above 1 ms: log(1.1 / 0.9) / 2 is 0.10034, and sinh of that 10%.
TEST(Speed, ASuiteInAPrecisionIsARowWithItsMeanItsBestAndHowSureTheyAre) {
  const DataTable table = table_of({product_at(2, 100), product_at(8, 200), product_at(3, 100, "bf16")});
  EXPECT_THAT(column_of(table, "suite"), ElementsAre("gemm", "gemm"));
  EXPECT_THAT(column_of(table, "precision"), ElementsAre("f32", "bf16"));
  EXPECT_THAT(column_of(table, "geometric mean"), ElementsAre("4.00 TFLOP/s", "3.00 TFLOP/s"));
  EXPECT_THAT(column_of(table, "best"), ElementsAre("8.00 TFLOP/s", "3.00 TFLOP/s"));
  EXPECT_THAT(column_of(table, "of cases"), ElementsAre("2 of 2", "1 of 1"));
  EXPECT_THAT(column_of(table, "±95%"), ElementsAre("10%", "10%", "10%", "10%"));  // of the means, then of the bests
}

TEST(Speed, AMeanSaysWhatItLeavesOutAndWhy) {
  CaseRecord warm = product_at(90, 400);
  warm.c.cache = CacheMode::warm;
  const DataTable table = table_of({product_at(2, 100), too_wide(product_at(50, 200)),
                                    with_verdict(product_at(70, 300), Verdict::not_proven, "nothing compared"), warm});
  EXPECT_THAT(column_of(table, "geometric mean"), ElementsAre("2.00 TFLOP/s"));
  EXPECT_THAT(column_of(table, "best"), ElementsAre("2.00 TFLOP/s"));
  EXPECT_THAT(column_of(table, "of cases"), ElementsAre("1 of 4; 1 not proven, 1 unreliable, 1 with a warm cache"));
}

TEST(Speed, WhereNoTimingIsReliableThereIsNoNumber) {
  const DataTable table = table_of({too_wide(product_at(2, 100))});
  EXPECT_THAT(column_of(table, "best"), ElementsAre("-"));
  EXPECT_THAT(column_of(table, "of cases"), ElementsAre("0 of 1; 1 unreliable"));
  EXPECT_TRUE(table_of({with_verdict(product_at(2, 100), Verdict::unsupported, "no f32 here")}).rows.empty());
}

TEST(Speed, WholeStepsComeFirstAndEachWorkloadOfItemsIsARow) {
  const CaseRecord block =
      with_rate(made_case("gpt2_block", {{"b", 8}}, "f32", "transformer"), 1e9, 1e6, "tokens/s", 10);
  const CaseRecord whole =
      with_rate(made_case("gpt2_train_step", {{"b", 8}}, "f32", "transformer"), 1e9, 1e6, "tokens/s", 5);
  EXPECT_THAT(column_of(table_of({product_at(2, 100), block, whole}), "suite"),
              ElementsAre("transformer/gpt2_train_step", "transformer/gpt2_block", "gemm"));
}

TEST(Speed, TheBestIsHeldAgainstThePeakWhereItIsKnownElseAgainstTheBestProduct) {
  CaseRecord known = product_at(8, 100, "bf16");
  known.derived.peak = PeakShare{"bf16", 8e12, 16e12, "a sheet", 0.5, {}, {}, {}, "", ""};
  CaseRecord convolution = with_rate(made_case("conv2d_forward", {{"n", 1}}, "f32", "conv"), 2e9, 1e6);
  convolution.parity.ops[0].kind = "conv2d_forward";
  EXPECT_THAT(column_of(table_of({known, product_at(8, 200), convolution}), "of the ceiling"),
              ElementsAre("50.0% of peak", "the ceiling itself", "25.0% of best gemm"));
}

// Four adds of one element: 4 FLOP on 32 bytes.
TEST(Speed, WhatOnlyStartsWorkComesLastAndIsHeldAgainstNoProduct) {
  const CaseRecord launches = with_rate(made_case("chain", {{"ops", 4}}, "f32", "launch"), 4, 32, "launches/s", 4);
  const DataTable table = table_of({launches, product_at(8, 100)});
  EXPECT_THAT(column_of(table, "suite"), ElementsAre("gemm", "launch/chain"));
  EXPECT_THAT(column_of(table, "of the ceiling"), ElementsAre("the ceiling itself", "-"));
}

TEST(Speed, SeveralRanksAreARowOfTheirOwn) {
  CaseRecord two = product_at(8, 100);
  two.c.ranks = 2;
  EXPECT_THAT(column_of(table_of({product_at(2, 100), two}), "precision"), ElementsAre("f32", "f32 x2"));
}

}  // namespace
}  // namespace gpubench::page

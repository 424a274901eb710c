#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;

// 5e-11 J per FLOP is 20 GFLOP per joule.
TEST(Energy, WorkPerJouleIsTheInverseOfEnergyPerWork) {
  CaseRecord record = made_gemm(100);
  record.derived.energy_j = 1e-4;
  record.derived.energy_per_work_j = 5e-11;
  const Figure figure = part_of(made_report({record, made_gemm(200)}), "energy").figures.front();
  const auto& bars = std::get<chart::BarChart>(figure.chart);
  ASSERT_EQ(bars.groups[0].bars.size(), 1U);
  EXPECT_DOUBLE_EQ(bars.groups[0].bars[0].value, 2e10);
  EXPECT_THAT(column_of(figure.table, "work per joule"), ElementsAre("20.0 GFLOP/J"));
  EXPECT_THAT(column_of(figure.table, "energy of a run"), ElementsAre("0.0001 J"));
}

TEST(Energy, WithoutACounterThereIsNone) { EXPECT_TRUE(part_of(made_report({made_gemm(100)}), "energy").empty()); }

CaseRecord tokens(int ranks) {
  CaseRecord record =
      with_rate(made_case("gpt2_train_step", {{"b", 8}}, "bf16", "transformer"), 1e9, 1e6, "tokens/s", 50.0);
  record.c.ranks = ranks;
  record.id = record.c.id();
  return record;
}

// 50 tokens in 1 ms are 50,000 a second: a million takes 20 s, at 3.6 an hour 0.001 a second: 0.02. Two ranks are
// charged for two devices. 1e9 FLOP in 1 ms: an exaFLOP takes 1e6 s: 1000.
TEST(Cost, IsThePriceOfTheTimeThatTheWorkTakes) {
  const SectionPart part = part_of(made_report({tokens(1), tokens(2)}), "energy", "Cost", {3.6});
  ASSERT_EQ(part.figures.size(), 2U);
  EXPECT_THAT(column_of(part.figures[0].table, "Cost of a million tokens"), ElementsAre("0.02", "0.04"));
  EXPECT_THAT(column_of(part.figures[1].table, "Cost of an exaFLOP (10^18)"), ElementsAre("1000", "2000"));
}

TEST(Cost, RanksOfOneProcessorSharePrice) {
  const SectionPart part = part_of(made_report({tokens(2)}, "cpu"), "energy", "Cost", {3.6});
  EXPECT_THAT(column_of(part.figures[0].table, "Cost of a million tokens"), ElementsAre("0.02"));
}

TEST(Cost, OnlyWholeStepsArePriced) {
  CaseRecord block = with_rate(made_case("gpt2_block", {{"b", 8}}, "bf16", "transformer"), 1e9, 1e6, "tokens/s", 50.0);
  CaseRecord images = with_rate(made_case("conv2d_forward", {{"n", 8}}, "f32", "conv"), 1e9, 1e6);
  images.derived.item = "images";
  images.derived.items_per_s = 1e6;
  const SectionPart part = part_of(made_report({block, images, made_gemm(100), tokens(1)}), "energy", "Cost", {3.6});
  ASSERT_EQ(part.figures.size(), 2U);
  for (const Figure& figure : part.figures)
    EXPECT_THAT(column_of(figure.table, "case"), ElementsAre("transformer/gpt2_train_step/b=8/bf16/x1"));
  const SectionPart none = part_of(made_report({block, images}), "energy", "Cost", {3.6});
  EXPECT_TRUE(none.figures.empty());
  EXPECT_THAT(none.notice, ::testing::HasSubstr("No whole training step passed"));
}

TEST(Cost, AnUnreliableRateHasNoPrice) {
  CaseRecord unsure = tokens(2);
  unsure.summary.ci95_high_ns = 2e6;
  const SectionPart part = part_of(made_report({tokens(1), unsure}), "energy", "Cost", {3.6});
  EXPECT_THAT(column_of(part.figures[0].table, "Cost of a million tokens"), ElementsAre("0.02"));
  EXPECT_THAT(part.lead, ::testing::HasSubstr("1 step is left out: the timing is unreliable."));
}

TEST(Cost, NothingIsSaidWithoutAPrice) { EXPECT_TRUE(part_of(made_report({tokens(1)}), "energy", "Cost").empty()); }

}  // namespace
}  // namespace gpubench::page

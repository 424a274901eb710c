#include "harness/report/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace {

using ::testing::HasSubstr;

CaseRecord step(int ranks, RankSpread spread) {
  CaseRecord record;
  record.c.suite = "transformer";
  record.c.workload = "block";
  record.c.dims = {{"b", 4}};
  record.c.recipe = "bf16";
  record.c.ranks = ranks;
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
  EXPECT_THAT(text, HasSubstr("87.3%     5.2%    +3.1%  transformer/block/b=4/bf16\n"));
  EXPECT_THAT(text, HasSubstr("-        -   +50.0%  transformer/block/b=4/bf16\n"));
}

TEST(ScalingText, SharesOfAnUnreliableTimingAreUnknownAndItsRateIsMarked) {
  RankSpread meaningless{.units = 4};
  meaningless.efficiency = 5.72;
  meaningless.exposed_communication = -0.71;
  CaseRecord noisy = step(2, meaningless);
  noisy.summary.ci95_low_ns = 40.0;
  noisy.summary.ci95_high_ns = 160.0;
  const std::string text = scaling_text({&noisy, 1});
  EXPECT_THAT(text, HasSubstr("~1.50 ktokens/s     unknown  unknown    +0.0%  transformer/block/b=4/bf16\n"));
}

// Of one rank there is a time that is no ground for an efficiency; without it there is nothing to be known.
TEST(ScalingText, AnEfficiencyAgainstAnUnreliableTimingIsUnknownAndAgainstNoneADash) {
  CaseRecord alone = step(1, {});
  alone.derived.ranks.reset();
  const std::vector<CaseRecord> both{alone, step(2, {.units = 4})};
  EXPECT_THAT(scaling_text(both), HasSubstr("unknown        -    +0.0%  transformer"));
  EXPECT_THAT(scaling_text({&both[1], 1}), HasSubstr(" -        -    +0.0%  transformer"));
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

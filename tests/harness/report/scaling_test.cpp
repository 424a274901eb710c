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

// CPU ranks: the contract of all communicators, and properties specific to them.
#include "reference/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/reference/collective_contract.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace testing {

const std::vector<DType> every_type{DType::f64, DType::f32, DType::f16, DType::bf16};

INSTANTIATE_TEST_SUITE_P(Cpu, Collectives,
                         ::testing::Values(RankOpening{"On2Ranks", 2, open_cpu_ranks, every_type},
                                           RankOpening{"On3Ranks", 3, open_cpu_ranks, every_type},
                                           RankOpening{"On4Ranks", 4, open_cpu_ranks},
                                           RankOpening{"On8Ranks", 8, open_cpu_ranks}),
                         [](const auto& named) { return named.param.name; });

}  // namespace testing
namespace cpu_ranks_test {

using testing::on_ranks;
using testing::ProgramRun;

TEST(CpuRankSet, AMaximumWithANanIsNanOnEveryRank) { testing::expect_nan_stays(*open_rank_group(open_cpu_ranks(3))); }

TEST(CpuRankSet, MoreRanksThanProcessorsAreFlagged) {
  EXPECT_EQ(open_cpu_ranks(64).flags, std::vector<std::string>{"oversubscribed"});
  EXPECT_TRUE(open_cpu_ranks(1).flags.empty());
}

TEST(CpuRankSet, NoRanksAndTooManyAreRefusedWithTheNumber) {
  EXPECT_THROW((void)open_cpu_ranks(0), BackendError);
  EXPECT_EQ(thrown_text<BackendError>([&] { (void)open_cpu_ranks(65); }), "cpu: 65 ranks; expected from 1 to 64");
}

TEST(CpuRankSet, ReductionsOfATypeThatItLacksAreUnsupportedByName) {
  const std::unique_ptr<Backend> ranks = open_rank_group(open_cpu_ranks(2));
  Program p;
  (void)all_reduce(p, {2}, Math{}, "y", on_ranks(p, DType::f8_e4m3, {4, 4}));
  const std::string words = testing::refusal(*ranks, p);
  EXPECT_NE(words.find("reductions of f8_e4m3"), std::string::npos) << words;
}

}  // namespace cpu_ranks_test
}  // namespace gpubench

#include "harness/core/case.h"

#include <gtest/gtest.h>

#include "harness/core/error.h"

namespace gpubench {
namespace {

Case linear() {
  Case c;
  c.suite = "gemm";
  c.workload = "linear_forward";
  c.dims = {{"m", 8192}, {"n", 2304}, {"k", 768}};
  c.recipe = "bf16";
  return c;
}

TEST(Case, TheIdIsTheExampleOfTheDesign) {
  EXPECT_EQ(linear().id(), "gemm/linear_forward/m=8192,n=2304,k=768/bf16/x1");
}

TEST(Case, ModesStandBetweenRecipeAndRanks) {
  Case c = linear();
  c.modes = {"warm", "virtual"};
  c.ranks = 8;
  EXPECT_EQ(c.id(), "gemm/linear_forward/m=8192,n=2304,k=768/bf16/warm/virtual/x8");
  EXPECT_EQ(c.id_without_ranks(), "gemm/linear_forward/m=8192,n=2304,k=768/bf16/warm/virtual");
}

TEST(Case, LabelTierAndCacheAreNotPartOfTheIdentity) {
  Case c = linear();
  c.label = "GPT-2 qkv";
  c.tier = Tier::large;
  c.cache = CacheMode::warm;
  EXPECT_EQ(c.id(), linear().id());
}

TEST(Case, CharactersOutsideTheGrammarAreRefused) {
  for (const char* bad : {"Gemm", "ge mm", "gemm\n", "gemm'", "gem\xc3\xa9"}) {
    Case c = linear();
    c.suite = bad;
    EXPECT_THROW((void)c.id(), ProgramError) << bad;
  }
}

TEST(Case, EveryCharacterOfTheGrammarIsAllowed) {
  Case c = linear();
  c.workload = "abcxyz0189._=,+x-";
  EXPECT_NO_THROW((void)c.id());
}

TEST(Case, AnIdHas200CharactersAtMost) {
  Case c = linear();
  c.workload.clear();
  const std::size_t rest = c.id().size();
  c.workload = std::string(200 - rest, 'w');
  EXPECT_EQ(c.id().size(), 200U);
  c.workload += 'w';
  EXPECT_THROW((void)c.id(), ProgramError);
}

TEST(Case, ADimensionIsFoundByNameOrRefused) {
  EXPECT_EQ(linear().dim("n"), 2304);
  EXPECT_THROW((void)linear().dim("b"), ProgramError);
}

}  // namespace
}  // namespace gpubench

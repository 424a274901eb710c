// Hash values are part of the identity of every fill and may never change.
#include "harness/core/hash.h"

#include <gtest/gtest.h>

#include <bit>

namespace gpubench {
namespace {

// The first three numbers of SplitMix64 from seed 0, printed by its authors' code.
TEST(Hash, MixIsSplitMix64) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mix(golden), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(mix(2 * golden), 0x06c45d188009454fULL);
}

// FNV-1a test vectors of its authors.
TEST(Hash, TextIsHashedByFnv1aThenMixed) {
  EXPECT_EQ(hash(""), mix(0xcbf29ce484222325ULL));
  EXPECT_EQ(hash("a"), mix(0xaf63dc4c8601ec8cULL));
  EXPECT_EQ(hash("foobar"), mix(0x85944171f73967e8ULL));
}

TEST(Hash, TheSeedChangesTheHashOfATextAndOrderMatters) {
  EXPECT_NE(hash("a", 1), hash("a", 2));
  EXPECT_NE(hash("b", hash("a")), hash("a", hash("b")));
}

TEST(Hash, AStreamDependsOnKeyAndIndexAlone) {
  EXPECT_EQ(hash_at(7, 11), mix(7ULL ^ mix(11)));
  EXPECT_NE(hash_at(7, 11), hash_at(11, 7));
}

// One flipped input bit should flip half of the output bits: over 64 x 64 trials the mean is 32 with standard deviation
// 4 / 64 = 0.0625. The tolerance of half a bit is eight of these.
TEST(Hash, EveryInputBitMovesHalfOfTheOutput) {
  double flipped = 0.0;
  for (std::uint64_t x = 0; x < 64; ++x) {
    for (int bit = 0; bit < 64; ++bit) flipped += std::popcount(hash_at(3, x) ^ hash_at(3, x ^ 1ULL << bit));
  }
  EXPECT_NEAR(flipped / (64.0 * 64.0), 32.0, 0.5);
}

}  // namespace
}  // namespace gpubench

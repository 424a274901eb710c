// Times of rings and trees, computed by hand from NCCL's constants.
#include "harness/network/collective_time.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace {

constexpr double micro = 1e-6;

double fastest_way_s(Passes passes, const InNodes& at, double bytes_s) {
  return fastest_way(passes, at, bytes_s).seconds(bytes_s);
}

/// One rank per node.
InNodes apart(double ranks) { return {ranks, ranks, 1.0}; }

// LL: 6.6 us, and 2.7 us for each of n - 1 steps.
TEST(FastestWay, ARingsLatencyGrowsWithItsRanks) {
  EXPECT_NEAR(fastest_way_s(Passes::once, apart(11), 0.0), (6.6 + 10 * 2.7) * micro, 1e-12);
  EXPECT_NEAR(fastest_way_s(Passes::once, apart(1001), 0.0), (6.6 + 1000 * 2.7) * micro, 1e-12);
}

// LL: 6.8 us, and 5 us up and 5 us down for each doubling.
TEST(FastestWay, ATreesLatencyGrowsWithEachDoubling) {
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(1024), 0.0), (6.8 + 2 * 10 * 5.0) * micro, 1e-12);
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(2048), 0.0), (6.8 + 2 * 11 * 5.0) * micro, 1e-12);
}

// No bytes, two ranks: ring 6.6 + 2 x 2.7 us, tree 6.8 + 2 x 5 us. A second of bytes on 4,096 ranks: the ring adds
// 8.4 us and 8,190 steps of 14 us, 115 ms (LL128: 120 ms); the tree loses 8% of the links for 8.4 us and 24 steps of
// 14 us. On 1,024 ranks the ring adds only 29 ms.
TEST(FastestWay, TakesTheBetterOfRingAndTree) {
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(2), 0.0), 12.0 * micro, 1e-12);
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(4096), 1.0), 1.0 / 0.92 + (8.4 + 24 * 14.0) * micro, 1e-9);
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(1024), 1.0), 1.0 + (8.4 + 2046 * 14.0) * micro, 1e-9);
}

TEST(FastestWay, OfALargeMessageIsItsBytes) {
  EXPECT_NEAR(fastest_way_s(Passes::there_back, apart(64), 1e4), 1e4, 1e-6 * 1e4);
}

TEST(FastestWay, DirectSendsTakeOneStep) {
  EXPECT_NEAR(fastest_way_s(Passes::direct, apart(1024), 0.0), (6.6 + 2.7) * micro, 1e-12);
  EXPECT_NEAR(fastest_way_s(Passes::direct, {8, 1, 8}, 0.0), (6.6 + 0.6) * micro, 1e-12);
}

}  // namespace
}  // namespace gpubench

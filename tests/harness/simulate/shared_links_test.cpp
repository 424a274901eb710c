#include "harness/simulate/shared_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(SharedLinks, TransfersWithoutACommonLinkDontSlowEachOther) {
  SharedLinks links;
  links.begin(0, {0, 1}, 1.0, 3.0);
  links.begin(1, {2, 3}, 1.0, 4.0);

  EXPECT_THAT(links.settle(0.0), IsEmpty());
  EXPECT_EQ(links.end_s(0), 3.0);
  EXPECT_EQ(links.end_s(1), 4.0);
}

TEST(SharedLinks, TransfersWithinTheCapacityOfALinkDontSlowEachOther) {
  SharedLinks links;
  for (std::size_t i = 0; i < 10; ++i) links.begin(i, {0}, 0.1, 3.0);

  EXPECT_THAT(links.settle(0.0), IsEmpty());
  EXPECT_EQ(links.end_s(9), 3.0);
}

TEST(SharedLinks, TwoOnOneLinkGetHalfEach) {
  SharedLinks links;
  links.begin(0, {0}, 1.0, 1.0);
  links.begin(1, {0}, 1.0, 1.0);

  EXPECT_THAT(links.settle(0.0), UnorderedElementsAre(0, 1));
  EXPECT_DOUBLE_EQ(links.end_s(0), 2.0);
  EXPECT_DOUBLE_EQ(links.end_s(1), 2.0);
}

// 1 s and 3 s: both at half rate until the short one ends at 2; the long one has 2 s left at full rate.
TEST(SharedLinks, ALongOneSpeedsUpWhenAShortOneIsOver) {
  SharedLinks links;
  links.begin(0, {0}, 1.0, 1.0);
  links.begin(1, {0}, 1.0, 3.0);
  links.settle(0.0);
  ASSERT_DOUBLE_EQ(links.end_s(0), 2.0);

  links.end(0);

  EXPECT_THAT(links.settle(2.0), UnorderedElementsAre(1));
  EXPECT_DOUBLE_EQ(links.end_s(1), 4.0);
}

// 4 s from 0; another of 1 s from 2: both at half rate until 4, then 1 s of the first is left.
TEST(SharedLinks, ALaterTransferGetsHalfFromItsBegin) {
  SharedLinks links;
  links.begin(0, {0}, 1.0, 4.0);
  EXPECT_THAT(links.settle(0.0), IsEmpty());

  links.begin(1, {0}, 1.0, 3.0);
  links.settle(2.0);
  ASSERT_DOUBLE_EQ(links.end_s(1), 4.0);
  links.end(1);
  links.settle(4.0);

  EXPECT_DOUBLE_EQ(links.end_s(0), 5.0);
}

// Three on link 1 get a third each; 0 gets the remaining two thirds of link 0. All have 1 s of work.
TEST(SharedLinks, AShareLimitedByAnotherLinkLeavesTheRestToOthers) {
  SharedLinks links;
  links.begin(0, {0}, 1.0, 1.0);
  links.begin(1, {0, 1}, 1.0, 1.0);
  links.begin(2, {1}, 1.0, 1.0);
  links.begin(3, {1}, 1.0, 1.0);
  links.settle(0.0);

  EXPECT_DOUBLE_EQ(links.end_s(0), 1.5);
  for (const std::size_t of_link_1 : {1U, 2U, 3U}) EXPECT_DOUBLE_EQ(links.end_s(of_link_1), 3.0);
}

// A demand of 0.1 is below a third and gets full rate. The others get 0.45 each: half the rate of 0.9, 90% of 0.5.
TEST(SharedLinks, ADemandBelowTheFairShareIsMet) {
  SharedLinks links;
  links.begin(0, {0}, 0.1, 1.0);
  links.begin(1, {0}, 0.9, 1.0);
  links.begin(2, {0}, 0.5, 1.0);

  EXPECT_THAT(links.settle(0.0), UnorderedElementsAre(1, 2));
  EXPECT_EQ(links.end_s(0), 1.0);
  EXPECT_DOUBLE_EQ(links.end_s(1), 2.0);
  EXPECT_DOUBLE_EQ(links.end_s(2), 1.0 / 0.9);
}

// 0 and 1 share link 0, 2 and 3 link 1; an end on one link does not change the other.
TEST(SharedLinks, OnlyTransfersConnectedByCrowdedLinksChange) {
  SharedLinks links;
  links.begin(0, {0}, 1.0, 1.0);
  links.begin(1, {0, 2}, 1.0, 2.0);
  links.begin(2, {1}, 0.9, 2.0);
  links.begin(3, {1, 3}, 0.9, 2.0);
  links.settle(0.0);

  links.end(0);

  EXPECT_THAT(links.settle(2.0), UnorderedElementsAre(1));
}

}  // namespace
}  // namespace gpubench

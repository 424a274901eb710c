#include "harness/core/shape.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "harness/core/error.h"

namespace gpubench {
namespace {

std::int64_t at(const Layout& layout, std::initializer_list<std::int64_t> index) {
  return layout.offset(std::span<const std::int64_t>(index.begin(), index.size()));
}

TEST(Shape, AScalarHasOneElementAndAnEmptyExtentHasNone) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ(Shape({4, 0, 3}).elements(), 0);
  EXPECT_EQ(Shape({8, 1024, 768}).elements(), 6291456);
}

TEST(Shape, NegativeAxesCountFromTheBack) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THROW((void)shape[3], ProgramError);
  EXPECT_THROW((void)shape[-4], ProgramError);
}

TEST(Shape, NegativeExtentsAndCountsBeyond64BitsAreRefused) {
  EXPECT_THROW(Shape({2, -1}), ProgramError);
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ(Shape({big, big}).elements(), std::int64_t{1} << 62);
  EXPECT_THROW(Shape({big, big, 2}), ProgramError);
}

TEST(Shape, IsWrittenWithBrackets) { EXPECT_EQ(Shape({8, 1024, 768}).to_string(), "[8, 1024, 768]"); }

TEST(Layout, RowMajorCountsTheLastAxisFastest) {
  const Shape shape{2, 3, 5};
  const Layout layout = Layout::row_major(shape);
  EXPECT_EQ(layout.strides, (std::vector<std::int64_t>{15, 5, 1}));
  EXPECT_TRUE(layout.is_row_major(shape));
  EXPECT_EQ(at(layout, {1, 2, 4}), 29);
  EXPECT_EQ(layout.offset(shape, 29), 29);
  EXPECT_EQ(layout.span_elements(shape), 30);
}

// [N, C, H, W] = [2, 3, 4, 5] kept as NHWC: C is fastest, then W (3), H (15), N (60).
TEST(Layout, OrderedListsAxesFromSlowestToFastest) {
  const Shape shape{2, 3, 4, 5};
  const Layout layout = Layout::ordered(shape, std::array{0, 2, 3, 1});
  EXPECT_EQ(layout.strides, (std::vector<std::int64_t>{60, 1, 15, 3}));
  EXPECT_EQ(at(layout, {1, 2, 3, 4}), 60 + 2 + 45 + 12);
  EXPECT_EQ(layout.span_elements(shape), 120);
  EXPECT_FALSE(layout.is_row_major(shape));
}

TEST(Layout, AnOrderThatIsNotAPermutationIsRefused) {
  EXPECT_THROW(static_cast<void>(Layout::ordered({2, 3}, std::array{0, 0})), ProgramError);
  EXPECT_THROW(static_cast<void>(Layout::ordered({2, 3}, std::array{0})), ProgramError);
}

// [5, 7] in blocks of 4 along the second axis: two blocks a row (the second with one element of padding), 8 a row.
// (3, 6): row 3 begins at 24, block 1 at 4, element 2 in it.
TEST(Layout, OneBlockedAxisIsPaddedToWholeBlocks) {
  const Shape shape{5, 7};
  const Layout layout = Layout::blocked(shape, {{1, 4}});
  EXPECT_EQ(layout.strides, (std::vector<std::int64_t>{8, 4}));
  EXPECT_EQ(at(layout, {3, 6}), 30);
  EXPECT_EQ(layout.offset(shape, 3 * 7 + 6), 30);
  EXPECT_EQ(layout.span_elements(shape), 40);
}

// 2 x 2 tiles of a [4, 4] matrix: tile (1, 1) begins at 12, and (3, 2) is its lower left element.
TEST(Layout, TilesAreBlocksOfBothAxes) {
  const Layout layout = Layout::blocked({4, 4}, {{0, 2}, {1, 2}});
  EXPECT_EQ(at(layout, {0, 1}), 1);
  EXPECT_EQ(at(layout, {1, 0}), 2);
  EXPECT_EQ(at(layout, {0, 2}), 4);
  EXPECT_EQ(at(layout, {3, 2}), 14);
}

// As oneDNN's weights for AMX: pairs of the second axis next to each other, four of the first, then two pairs.
// (3, 5): 5 = pair 2, element 1; pair 2 = first of outer block 1. 16 (outer block) + 0 (pair in it) + 3 * 2 + 1 = 23.
TEST(Layout, AnAxisMayBeBlockedTwice) {
  const Shape shape{4, 8};
  const Layout layout = Layout::blocked(shape, {{1, 2}, {0, 4}, {1, 2}});
  EXPECT_EQ(layout.strides, (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ(at(layout, {3, 5}), 23);
  EXPECT_EQ(at(layout, {0, 3}), 9);
  EXPECT_EQ(layout.span_elements(shape), 32);
}

TEST(Layout, ABlockedLayoutPutsEveryElementSomewhereElse) {
  const Shape shape{5, 6, 7};
  const Layout layout = Layout::blocked(shape, {{2, 4}, {0, 2}, {2, 2}});
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < shape.elements(); ++i) seen.insert(layout.offset(shape, i));
  EXPECT_EQ(seen.size(), 210U);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), layout.span_elements(shape));
}

TEST(Layout, ABlockOfAMissingAxisIsRefused) {
  EXPECT_THROW(static_cast<void>(Layout::blocked({4}, {{1, 2}})), ProgramError);
}

// A [2, 3] part of a storage with rows of 10: its last element lies at 12.
TEST(Layout, TheSpanOfAStridedPartEndsAtItsLastElement) {
  const Layout layout{{10, 1}, {}};
  EXPECT_EQ(layout.span_elements({2, 3}), 13);
  EXPECT_EQ(layout.span_elements({0, 3}), 0);
  EXPECT_EQ(layout.to_string({2, 3}), "strides(10, 1)");
}

}  // namespace
}  // namespace gpubench

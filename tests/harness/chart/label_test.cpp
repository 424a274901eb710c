#include "harness/chart/label.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/chart/canvas.h"
#include "harness/chart/plot.h"

namespace gpubench::chart {
namespace {

using ::testing::ElementsAre;

TEST(Number, HasAtMostOneDecimalAndNoMinusBeforeZero) {
  EXPECT_EQ(number(12.0), "12");
  EXPECT_EQ(number(3.14), "3.1");
  EXPECT_EQ(number(-0.04), "0");
  EXPECT_EQ(number(-2.5), "-2.5");
  EXPECT_EQ(number(1e6), "1000000");
}

TEST(Label, AWidthIsAtLeastThatOfArial) {
  // Adobe's metrics of Helvetica, which Arial shares, in thousandths: digits 556, W 944, i 222, m 833.
  EXPECT_GE(text_width("0123456789", 10.0), 55.6);
  EXPECT_GE(text_width("TFLOP/s", 10.0), 38.9);  // in thousandths 611 611 556 778 556 278 500
  EXPECT_GE(text_width("min", 10.0), 16.1);      // 833 222 556
}

TEST(Label, WhatFitsStaysAndWhatDoesNotEndsInAnEllipsis) {
  EXPECT_EQ(shortened("gemm", 100.0, 14.0), "gemm");
  const std::string cut_short = shortened(std::string(100, 'x'), 100.0, 14.0);
  EXPECT_THAT(cut_short, ::testing::EndsWith("\u2026"));
  EXPECT_LE(text_width(cut_short, 14.0), 100.0);
  EXPECT_GT(cut_short.size(), 9U);
}

TEST(Label, ACutNeverSplitsACharacter) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "\xf0\x9f\x98\x80";
  for (double width = 20.0; width < 200.0; width += 1.0) {
    const std::string shown = shortened(text, width, 14.0);
    EXPECT_EQ((shown.size() - 3U) % 4U, 0U) << width;  // whole characters of four bytes, the ellipsis has three
  }
  EXPECT_EQ(cut("abcdef", 4), "abc\u2026");
  EXPECT_EQ(cut("abcd", 4), "abcd");
}

TEST(Label, LinesBreakAfterASeparatorAndTheLastIsShortened) {
  EXPECT_THAT(wrapped("gemm/m=8192/bf16", 70.0, 10.0, 2), ElementsAre("gemm/", "m=8192/bf16"));
  EXPECT_THAT(wrapped("", 60.0, 10.0, 2), ElementsAre());
  const std::vector<std::string> lines = wrapped(std::string(500, 'x'), 60.0, 10.0, 2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[1], ::testing::EndsWith("\u2026"));
}

TEST(Thin, KeepsEndsAndTheExtremesOfEachStretch) {
  // Between the ends are 8 values in two stretches: (5 1 9 5) and (5 5 0 7).
  EXPECT_THAT(kept({4, 5, 1, 9, 5, 5, 5, 0, 7, 4}, 6), ElementsAre(0U, 2U, 3U, 7U, 8U, 9U));
  EXPECT_THAT(kept({1, 2, 3}, 6), ElementsAre(0U, 1U, 2U));
}

TEST(Thin, ASeriesKeepsItsShare) {
  Series many{"many", Mark::line, std::vector<Point>(9000)};
  Series few{"few", Mark::line, std::vector<Point>(1000)};
  for (int i = 0; i < 9000; ++i) many.points[static_cast<std::size_t>(i)].y = i;
  for (int i = 0; i < 1000; ++i) few.points[static_cast<std::size_t>(i)].y = i;
  std::vector<Series> series{many, few};
  EXPECT_EQ(thin(series, 1000), 10000U);
  EXPECT_EQ(series[0].points.size(), 900U);
  EXPECT_EQ(series[1].points.size(), 100U);
}

}  // namespace
}  // namespace gpubench::chart

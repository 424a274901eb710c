#include "harness/page/chart/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "harness/page/chart/canvas.h"
#include "harness/page/chart/chart.h"
#include "harness/page/chart/plot.h"

namespace gpubench::chart {

namespace {

// Relative luminance and contrast of WCAG 2.1, independent of the code under test.
double luminance(const std::string& colour) {
  const int rgb = std::stoi(colour.substr(1), nullptr, 16);
  double sum = 0.0;
  const double weights[] = {0.0722, 0.7152, 0.2126};  // from the lowest byte: blue, green, red
  for (int i = 0; i < 3; ++i) {
    const double c = ((rgb >> (8 * i)) & 0xff) / 255.0;
    sum += weights[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const double light = std::max(luminance(a), luminance(b));
  const double dark = std::min(luminance(a), luminance(b));
  return (light + 0.05) / (dark + 0.05);
}

using Colours = std::map<std::string, std::string>;

Colours colours_in(const std::string& css) {
  Colours colours;
  const std::regex pattern("--c-([a-z]+):(#[0-9a-f]{6})");
  for (auto c = std::sregex_iterator(css.begin(), css.end(), pattern); c != std::sregex_iterator(); ++c)
    colours[(*c)[1]] = (*c)[2];
  return colours;
}

struct Schemes {
  Colours light;
  Colours dark;
};

Schemes schemes() {
  const std::string css = chart_style();
  const std::size_t at = css.find("prefers-color-scheme:dark");
  return {colours_in(css.substr(0, at)), colours_in(css.substr(at))};
}

TEST(Style, BlackOnWhiteIsTwentyOneToOne) { EXPECT_NEAR(contrast("#000000", "#ffffff"), 21.0, 1e-9); }

TEST(Style, TextHasAContrastOfFourAndAHalfInLightAndDark) {
  for (Colours colours : {schemes().light, schemes().dark}) {
    ASSERT_EQ(colours.size(), 5U);
    for (const char* ground : {"paper", "limit"}) {
      EXPECT_GE(contrast(colours["ink"], colours[ground]), 4.5);
      EXPECT_GE(contrast(colours["muted"], colours[ground]), 4.5);
    }
  }
}

TEST(Style, LinesAreSeenInLightAndDarkAndMarkersHaveARimOfInk) {
  for (Colours colours : {schemes().light, schemes().dark}) {
    for (const std::string_view series : series_colours) {
      const std::string colour = series == "currentColor" ? colours["ink"] : std::string(series);
      // Orange and sky blue have 2.2 on white: Okabe and Ito chose them for hue. The rims of their markers have more
      // than 4.5.
      EXPECT_GE(contrast(colour, colours["paper"]), 2.0) << colour;
    }
  }
  EXPECT_THAT(chart_style(), ::testing::HasSubstr(".c-mark{stroke-width:.8px;stroke:#1b1f24;stroke:var(--c-ink);"));
}

TEST(Style, TextOnAnyShadeOfAHeatMapIsReadable) {
  for (int i = 0; i <= 1000; ++i) {
    const std::string shade = shade_colour(i / 1000.0);
    EXPECT_GE(contrast(std::string(text_on(shade)), shade), 4.5) << shade;
  }
}

TEST(Style, MoreIsDarkerInBlackAndWhiteToo) {
  for (int i = 1; i <= 20; ++i) EXPECT_LT(luminance(shade_colour(i / 20.0)), luminance(shade_colour((i - 1) / 20.0)));
  EXPECT_EQ(shade_colour(7.0), shade_colour(1.0));
  EXPECT_EQ(shade_colour(std::nan("")), shade_colour(0.0));
}

TEST(Style, TheFirstSevenSeriesDifferInColourAndInDash) {
  EXPECT_EQ(std::set<std::string_view>(std::begin(series_colours), std::end(series_colours)).size(), 7U);
  EXPECT_EQ(std::set<std::string_view>(std::begin(series_dashes), std::end(series_dashes)).size(), 8U);
}

TEST(Style, NothingMovesLoadsOrRuns) {
  const std::string css = chart_style();
  for (const char* word : {"animation", "transition", "@keyframes", "url(", "@import", "expression", "<", "&"})
    EXPECT_THAT(css, ::testing::Not(::testing::HasSubstr(word)));
}

TEST(Style, OnPaperTheColoursAreThoseOfLight) {
  EXPECT_THAT(chart_style(), ::testing::HasSubstr("@media screen and (prefers-color-scheme:dark)"));
}

}  // namespace

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
    EXPECT_EQ((shown.size() - 3U) % 4U, 0U) << width;  // whole characters of four bytes; the ellipsis has three
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
  // Between the ends are 8 values in two parts: (5 1 9 5) and (5 5 0 7).
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

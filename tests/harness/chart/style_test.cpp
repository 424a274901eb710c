#include "harness/chart/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "harness/chart/chart.h"

namespace gpubench::chart {
namespace {

// Relative luminance and contrast as WCAG 2.1 defines them, written here anew.
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
    for (const char* ground : {"paper", "stripe"}) {
      EXPECT_GE(contrast(colours["ink"], colours[ground]), 4.5);
      EXPECT_GE(contrast(colours["muted"], colours[ground]), 4.5);
    }
  }
}

TEST(Style, LinesAreSeenInLightAndDarkAndMarkersHaveARimOfInk) {
  for (Colours colours : {schemes().light, schemes().dark}) {
    for (const std::string_view series : series_colours) {
      const std::string colour = series == "currentColor" ? colours["ink"] : std::string(series);
      // Orange and sky blue have 2.2 on white: Okabe and Ito chose them for hue. Their markers' rim has more than 4.5.
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
}  // namespace gpubench::chart

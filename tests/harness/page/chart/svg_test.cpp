#include "harness/page/chart/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <set>

#include "harness/core/text/visible_text.h"
#include "tests/harness/page/chart/sample_charts.h"
#include "tests/harness/report/hostile_text.h"

namespace gpubench::chart {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

Point at(double x, double y) {
  Point point;
  point.x = x;
  point.y = y;
  return point;
}

PlotChart plot_of(Mark mark, std::vector<Point> points) {
  PlotChart chart;
  chart.series = {{"series", mark, std::move(points)}};
  return chart;
}

// Each kind of chart, with `text` in every place.
std::vector<std::string> charts_that_say(const std::string& text) {
  PlotChart plot = plot_of(Mark::line, {at(1.0, 1.0), at(2.0, 2.0)});
  plot.title = plot.description = plot.x.title = plot.y.title = plot.x.unit = plot.series[0].name = text;
  plot.series[0].points[0].note = text;
  plot.guides = {{text, {at(0.0, 1.5)}}, {text, {at(1.0, 1.0), at(2.0, 2.0)}}};
  BarChart bars;
  bars.title = bars.value.title = text;
  bars.groups = {{text, {{}}}};
  Bar& bar = bars.groups[0].bars[0];
  bar.value = 1.0;
  bar.label = bar.text = bar.note = text;
  StackChart stack;
  stack.title = text;
  stack.bars = {{text, {{text, 0.7, text}, {"rest", 0.3, text}}}};
  HeatMap heat;
  heat.title = text;
  heat.columns = heat.rows = {text};
  heat.cells = {{{text, 0.5, true, text}}};
  ForestChart forest;
  forest.title = forest.axis_title = text;
  forest.rows = {{text, 1.0, 0.9, 1.1, text, false}};
  const Placement page = Placement::page;
  return {svg(plot, "a", page), svg(bars, "b", page), svg(stack, "c", page), svg(heat, "d", page),
          svg(forest, "e", page)};
}

TEST(Svg, EveryDrawingIsWellFormed) {
  for (const NamedDrawing& drawing : sample_drawings(Placement::page))
    EXPECT_EQ(not_well_formed(drawing.svg), "") << drawing.name;
}

TEST(Svg, TheCheckOfFormSeesWhatIsWrong) {
  for (const char* wrong : {"<a>", "<a></b>", "<a x=\"1\" x=\"2\"/>", "<a>&nbsp;</a>", "<a x=\"<\"/>", "<a>]]></a>",
                            "<a>\x01</a>", "<a x=1/>", "<a>\xef\xbf\xbf</a>", "a<"})
    EXPECT_NE(not_well_formed(wrong), "") << wrong;
}

TEST(Svg, HostileTextStaysTextInEveryPlaceOfEveryChart) {
  std::vector<std::string> texts = hostile_texts();
  texts.insert(texts.end(),
               {"</text><script>alert(1)</script>", "</title></svg><img src=x onerror=alert(1)>", "]]>",
                "\" onload=\"alert(1)", "url(#x)\"/><a href=\"http://example.invalid\">", "\xe2\x81\xa6x\xe2\x80\xae",
                "\xff\xfe", "\xef\xbf\xbf", "<style>*{display:none}</style>"});
  for (const std::string& text : texts) {
    for (const std::string& drawing : charts_that_say(text)) {
      EXPECT_EQ(not_well_formed(drawing), "") << text;
      for (const char* markup : {"<script", "<img", "<a ", "<style", "<foreignObject"})
        EXPECT_EQ(count(drawing, markup), 0U) << text;
      EXPECT_FALSE(std::regex_search(drawing, std::regex(" on[a-z]+=\"|[ :]href=\""))) << text;
      for (const char* steering : {"\xe2\x80\xae", "\xe2\x81\xa6", "\x1b", "\x07"})
        EXPECT_EQ(count(drawing, steering), 0U) << text;
    }
  }
}

TEST(Svg, ANameOfTenThousandCharactersIsCutWithAnEllipsis) {
  const std::string name = std::string(9999, 'x') + "@";
  for (const std::string& drawing : charts_that_say(name)) {
    EXPECT_THAT(drawing, Not(HasSubstr("@"))) << "the end of the name";
    EXPECT_THAT(drawing, HasSubstr("\u2026"));
    EXPECT_LT(drawing.size(), 12000U);
  }
}

TEST(Svg, AChartWithNothingToDrawIsEmpty) {
  const Placement file = Placement::file;
  EXPECT_EQ(svg(PlotChart{}, "a", file), "");
  EXPECT_EQ(svg(BarChart{}, "a", file), "");
  EXPECT_EQ(svg(StackChart{}, "a", file), "");
  EXPECT_EQ(svg(HeatMap{}, "a", file), "");
  EXPECT_EQ(svg(ForestChart{}, "a", file), "");
  EXPECT_EQ(svg(plot_of(Mark::line, {at(nan, 1.0), at(1.0, infinity)}), "a", file), "");
  HeatMap no_text;
  no_text.columns = no_text.rows = {"x"};
  no_text.cells = {{{}}};
  EXPECT_EQ(svg(no_text, "a", file), "");
  BarChart no_number;
  no_number.groups = {{"g", {{}}}};
  no_number.groups[0].bars[0].value = nan;
  EXPECT_EQ(svg(no_number, "a", file), "");
}

TEST(Svg, WhatIsNotFiniteOrNotPositiveOnALogarithmIsLeftOut) {
  PlotChart chart =
      plot_of(Mark::scatter, {at(1.0, 1.0), at(2.0, 0.0), at(3.0, -1.0), at(4.0, nan), at(nan, 2.0), at(5.0, 2.0)});
  EXPECT_EQ(count(svg(chart, "a", Placement::page), "class=\"c-mark\""), 4U + 1U);
  chart.y.scale = Scale::log10;
  EXPECT_EQ(count(svg(chart, "a", Placement::page), "class=\"c-mark\""), 2U + 1U);
  for (const char* word : {"nan", "inf"}) EXPECT_THAT(svg(chart, "a", Placement::page), Not(HasSubstr(word)));
}

TEST(Svg, IdsAreUniqueOnAPageOfSeveralCharts) {
  std::string page;
  for (const NamedDrawing& drawing : sample_drawings(Placement::page)) page += drawing.svg;
  std::set<std::string> ids;
  const std::regex pattern(" id=\"([^\"]*)\"");
  for (auto id = std::sregex_iterator(page.begin(), page.end(), pattern); id != std::sregex_iterator(); ++id)
    EXPECT_TRUE(ids.insert((*id)[1]).second) << (*id)[1];
  EXPECT_GE(ids.size(), 14U);
  const std::regex labelled("aria-labelledby=\"([^ \"]*) ([^\"]*)\"|url\\(#([^)]*)\\)");
  for (auto use = std::sregex_iterator(page.begin(), page.end(), labelled); use != std::sregex_iterator(); ++use)
    for (const std::size_t group : {1U, 2U, 3U}) {
      const bool dangling = (*use)[group].matched && !ids.contains((*use)[group]);
      EXPECT_FALSE(dangling) << (*use)[group];
    }
}

TEST(Svg, AnIdThatCouldEndAnAttributeIsRefused) {
  EXPECT_THROW(static_cast<void>(svg(throughput_sample(), "a\"b", Placement::page)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(svg(throughput_sample(), "", Placement::page)), std::invalid_argument);
}

TEST(Svg, ScreenReadersAreToldTitleAndDescription) {
  for (const NamedDrawing& drawing : sample_drawings(Placement::file)) {
    EXPECT_THAT(drawing.svg,
                HasSubstr("role=\"img\" aria-labelledby=\"" + drawing.name + "-title " + drawing.name + "-desc\""));
    EXPECT_FALSE(std::regex_search(drawing.svg, std::regex("<(title|desc) id=[^>]*></"))) << "nothing to read out";
  }
}

TEST(Svg, ASeriesAndItsKeyCarryTheSameNumber) {
  const std::string drawing = svg(throughput_sample(), "t", Placement::page);
  for (const char* number : {"0", "1", "2", "3"}) {
    EXPECT_THAT(drawing, HasSubstr(std::string("<g class=\"c-series\" data-series=\"") + number));
    EXPECT_THAT(drawing, HasSubstr(std::string("<g class=\"c-key\" data-series=\"") + number));
  }
}

TEST(Svg, SixtyThousandPointsAreThinnedWithTheirExtremesAndSaidSo) {
  std::vector<Point> points;
  for (int i = 0; i < 60000; ++i) points.push_back(at(i, 1.0 + 0.001 * (i % 17)));
  points[31234].y = 9.0;
  points[31234].note = "the highest";
  points[41234].y = 0.1;
  points[41234].note = "the lowest";
  const std::string drawing = svg(plot_of(Mark::scatter, points), "a", Placement::page);
  EXPECT_LE(count(drawing, "class=\"c-mark\""), 10000U + 1U);
  EXPECT_GT(count(drawing, "class=\"c-mark\""), 9000U);
  EXPECT_THAT(drawing, ::testing::AllOf(HasSubstr("the highest</title>"), HasSubstr("the lowest</title>"),
                                        HasSubstr("Of 60,000 points about 10,000 are drawn")));
  EXPECT_EQ(drawing, svg(plot_of(Mark::scatter, points), "a", Placement::page));
}

TEST(Svg, PartsBelowOnePercentAreOneOther) {
  StackChart chart;
  chart.bars = {{"whole", {{"large", 0.985, ""}, {"tiny", 0.008, ""}, {"tinier", 0.007, ""}}}};
  const std::string drawing = svg(chart, "a", Placement::page);
  EXPECT_THAT(drawing, ::testing::AllOf(HasSubstr(">other 1.5%<"), Not(HasSubstr(">tiny"))));
}

TEST(Svg, ABarEndsWhereItsValueStands) {
  BarChart chart;
  chart.value.high = 200.0;
  chart.groups = {{"", {{}}}};
  chart.groups[0].bars[0].value = 50.0;
  // The axis goes from 12 to 408: a quarter of its 396 is 99.
  EXPECT_THAT(svg(chart, "a", Placement::page), HasSubstr("fill=\"#0072b2\" x=\"12\" y=\"32\" width=\"99\""));
}

// The highest of three points is 300; its interval, and that of the lowest, would need 1000 times as much.
PlotChart with_wide_intervals(Mark mark) {
  std::vector<Point> points{at(1.0, 100.0), at(2.0, 200.0), at(3.0, 300.0)};
  points[0].low = -3e5;
  points[0].high = 110.0;
  points[2].low = 290.0;
  points[2].high = 3e5;
  return plot_of(mark, points);
}

TEST(Svg, AWhiskerThatLeavesTheDrawingEndsInAnArrowAndDoesNotFlattenTheRest) {
  for (const Mark mark : {Mark::scatter, Mark::line}) {
    const std::string drawing = svg(with_wide_intervals(mark), "a", Placement::page);
    EXPECT_THAT(drawing, HasSubstr(">300</text>"));  // a tick in the range of the data
    EXPECT_THAT(drawing, Not(HasSubstr("00,000")));
    // An arrow has three points: its tip is the middle one, 3.5 to either side and 5 behind it.
    EXPECT_TRUE(std::regex_search(drawing, std::regex("class=\"c-whisker\" d=\"[^\"]*M[0-9.]+ [0-9.]+L[0-9.]+ "
                                                      "[0-9.]+L[0-9.]+ [0-9.]+M[0-9.]+ [0-9.]+L")));
  }
  PlotChart narrow = with_wide_intervals(Mark::line);
  for (Point& point : narrow.series[0].points) {
    if (!point.low) continue;
    point.low = point.y - 1.0;
    point.high = point.y + 1.0;
  }
  EXPECT_THAT(svg(narrow, "a", Placement::page), Not(HasSubstr("class=\"c-whisker\"")));
}

// Bars of 100 and 50; the second interval ends at 1e6. The axis ends at 125; the tip is at its end, 408.
TEST(Svg, AWhiskerOfABarThatLeavesTheDrawingEndsInAnArrow) {
  BarChart chart;
  chart.groups = {{"", {{}, {}}}};
  chart.groups[0].bars[0].value = 100.0;
  chart.groups[0].bars[1].value = 50.0;
  chart.groups[0].bars[1].low = 40.0;
  chart.groups[0].bars[1].high = 1e6;
  const std::string drawing = svg(chart, "a", Placement::page);
  EXPECT_TRUE(std::regex_search(drawing, std::regex("M403 [0-9.]+L408 [0-9.]+L403 ")));
  EXPECT_THAT(drawing, HasSubstr(">120</text>"));
}

TEST(Svg, AnUnreliableTimingIsHollowAndTheChartSaysSo) {
  PlotChart plot = plot_of(Mark::scatter, {at(1.0, 1.0), at(2.0, 2.0)});
  EXPECT_THAT(svg(plot, "a", Placement::page), Not(HasSubstr("hollow")));
  plot.series[0].points[1].doubtful = true;
  const std::string drawing = svg(plot, "a", Placement::page);
  EXPECT_EQ(count(drawing, "class=\"c-doubtful\""), 2U);  // the point and the key
  EXPECT_THAT(drawing, HasSubstr(">hollow: the timing is unreliable</text>"));
  BarChart bars;
  bars.groups = {{"", {{}}}};
  bars.groups[0].bars[0].value = 1.0;
  bars.groups[0].bars[0].doubtful = true;
  EXPECT_THAT(svg(bars, "a", Placement::page), HasSubstr("hollow: the timing is unreliable"));
}

// Ten names over two bars: the two smallest in total have no colour; the others' colours differ.
TEST(Svg, NoColourOfABreakdownStandsForTwoOperators) {
  StackChart chart;
  chart.bars.resize(2);
  for (int i = 0; i < 10; ++i)
    chart.bars[static_cast<std::size_t>(i % 2)].parts.push_back({"op" + std::to_string(i), 0.05 + 0.01 * i, ""});
  chart.bars[0].parts.push_back({"left over", 0.1, ""});
  const std::string drawing = svg(chart, "a", Placement::page);
  EXPECT_THAT(drawing, HasSubstr(">other 5.0%<"));  // op0
  EXPECT_THAT(drawing, HasSubstr(">other 6.0%<"));  // op1
  EXPECT_THAT(drawing, ::testing::AllOf(Not(HasSubstr(">op0 ")), Not(HasSubstr(">op1 "))));
  std::set<std::string> fills;
  const std::regex part("class=\"c-part\" fill=\"([^\"]+)\"");
  for (std::sregex_iterator at(drawing.begin(), drawing.end(), part); at != std::sregex_iterator(); ++at)
    fills.insert((*at)[1]);
  EXPECT_EQ(fills.size(), 10U);  // eight operators, "other", "left over"
}

TEST(Svg, ACellOverTheLimitIsBoxedCrossedAndSaysSo) {
  const std::string drawing = svg(budget_sample(), "a", Placement::page);
  EXPECT_EQ(count(drawing, "class=\"c-over-limit\""), 1U);
  EXPECT_EQ(count(drawing, ">over</text>"), 1U);
  EXPECT_EQ(count(drawing, "class=\"c-cross\""), 2U);
}

}  // namespace
}  // namespace gpubench::chart

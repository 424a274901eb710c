#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/page/html.h"
#include "harness/page/report_page.h"
#include "tests/harness/page/made_cases.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const Report& report) { return report_page({&report, 1}); }

// EXPECT_THAT would print the whole page.
bool holds(const std::string& page, const std::string& part) { return page.find(part) != std::string::npos; }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Document, SectionsStandInOneOrderAndOnlyWhereTheReportHoldsThem) {
  PageOptions price;
  price.price_per_hour = 2.0;
  const auto keys = [&](const std::vector<Report>& reports) {
    std::vector<std::string> all;
    for (const Section& section : drawn_sections(reports, price)) all.push_back(section.key);
    return all;
  };
  EXPECT_THAT(keys({large_report(400), large_report(400)}),
              ElementsAre("checks", "comparison", "throughput", "roofline", "scaling", "error-budget", "breakdown",
                          "energy", "cases", "environment"));
  CaseRecord skipped = with_verdict(made_gemm(4), Verdict::skipped, "no room");
  skipped.parity = {};
  EXPECT_THAT(keys({made_report({skipped})}), ElementsAre("checks", "energy", "cases", "environment"));
  const std::string page = page_of(made_report({skipped}));
  EXPECT_FALSE(holds(page, "<h2>Throughput"));
  EXPECT_FALSE(holds(page, "<h3>Failures"));
  EXPECT_FALSE(holds(page, "<svg"));
  EXPECT_TRUE(holds(page, "<h2>Environment"));
}

TEST(Document, TheVerdictIsAWordWithItsCounts) {
  const std::string good = page_of(made_report({made_gemm(100), made_gemm(200)}));
  EXPECT_TRUE(holds(good, "<b>PASS</b> <span>2 of 2 cases passed</span>"));
  const std::string bad = page_of(made_report({made_gemm(100), with_verdict(made_gemm(200), Verdict::fail, "wrong"),
                                               with_verdict(made_gemm(300), Verdict::unsupported, "no bf16 here")}));
  EXPECT_TRUE(holds(bad, "<b>FAIL</b> <span>1 of 3 cases passed</span>"));
  EXPECT_TRUE(holds(bad, "<b>1</b> fail</li>"));
  EXPECT_TRUE(holds(bad, "<b>1</b> unsupported"));
  EXPECT_FALSE(holds(good, "class=\"counts\""));
  Report interrupted = made_report({made_gemm(100)});
  interrupted.run.complete = false;
  EXPECT_TRUE(holds(page_of(interrupted), "<b>INCOMPLETE</b>"));
}

// Two cases with 100 of 400 elements and 3 corrupted copies each.
TEST(Document, TheVerdictTellsWhatWasJudged) {
  const std::string page = page_of(made_report({made_gemm(100), made_gemm(200)}));
  EXPECT_TRUE(holds(page, "<b>200</b> against an fp64 textbook: 25.0% of all, in 2 checks of ops"));
  EXPECT_TRUE(holds(page, "<b>6 of 6</b> injected, to show that each check can fail"));
  EXPECT_TRUE(
      holds(page, "<b>0.25</b> of its bound, in gemm/<wbr>matmul/<wbr>m=100,<wbr>n=100,<wbr>k=100/<wbr>f32/<wbr>x1"));
}

TEST(Document, TheVerdictOfABriefReportCountsAllChecks) {
  CaseRecord record = made_gemm(100);
  record.parity.ops.insert(record.parity.ops.end(), 2, record.parity.ops.front());
  record = brief(std::move(record));
  ASSERT_EQ(record.parity.ops.size(), 1U);
  const std::string page = page_of(made_report({record}));
  EXPECT_TRUE(holds(page, "<b>300</b> against an fp64 textbook: 25.0% of all, in 3 checks of ops"));
  EXPECT_TRUE(holds(page, "<b>9 of 9</b> injected"));
}

TEST(Document, AFailureIsToldWithItsElementAndItsRerunLine) {
  const std::string page = page_of(holding_report());
  EXPECT_TRUE(holds(page, "<h3>Failures</h3>"));
  EXPECT_TRUE(holds(page, "c[0, 17]  got nan  want -1.8390312"));
  EXPECT_TRUE(holds(page, "<code class=\"rerun\">gpubench run --filter &apos;^gemm/"));
}

TEST(Document, WarnsOfWhatMakesItsNumbersNoResults) {
  Report report = made_report({with_verdict(made_gemm(100), Verdict::unverified, "--check off")});
  EXPECT_TRUE(holds(page_of(report), "Nothing was verified (--check off)"));
  report.run.injected = "gemm=25%";
  EXPECT_TRUE(holds(page_of(report), "A fault was injected: gemm=25%"));
}

TEST(Document, EveryChartHasItsNumbersBelowIt) {
  const std::string page = page_of(large_report(200));
  const std::size_t figures = count_of(page, "<figure>");
  EXPECT_GT(figures, 10U);
  EXPECT_EQ(count_of(page, "<svg"), figures);
  EXPECT_EQ(count_of(page, "<summary>Data: "), figures);
}

TEST(Document, AllIdsAreDifferent) {
  const std::string page = page_of(large_report(400));
  std::set<std::string> ids;
  std::size_t found = 0;
  for (std::size_t at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1)) {
    const std::size_t from = at + 5;
    ids.insert(page.substr(from, page.find('"', from) - from));
    ++found;
  }
  EXPECT_GT(found, 20U);
  EXPECT_EQ(ids.size(), found);
}

TEST(Document, EverySectionBelowTheSummaryIsInTheNavigation) {
  const std::string page = page_of(large_report(200));
  std::vector<std::string> sections, links;
  const auto collect = [&](const std::string& before, std::vector<std::string>& found) {
    for (std::size_t at = page.find(before); at != std::string::npos; at = page.find(before, at + 1)) {
      const std::size_t from = at + before.size();
      found.push_back(page.substr(from, page.find('"', from) - from));
    }
  };
  collect("<section id=\"", sections);
  collect("<li><a href=\"#", links);
  ASSERT_FALSE(sections.empty());
  EXPECT_EQ(sections.front(), "summary");
  sections.erase(sections.begin());
  EXPECT_EQ(sections, links);
}

TEST(Document, NothingOutsideIsNamed) {
  const std::string page = page_of(large_report(200));
  for (const char* outside : {"http:", "https:", "://", "src=", "@import", "<link", "<img", "<iframe", "javascript:"})
    EXPECT_FALSE(holds(page, outside));
  EXPECT_EQ(count_of(page, "url("), count_of(page, "url(#"));
}

TEST(Document, OnlyTheOneScriptMayRun) {
  EXPECT_LE(script().size(), 10240U);
  const std::string page = page_of(made_report({made_gemm(100)}));
  EXPECT_EQ(count_of(page, "<script"), 1U);
  EXPECT_TRUE(holds(page, "<script>" + std::string(script()) + "</script>"));
  EXPECT_TRUE(holds(page, "default-src 'none'; style-src 'unsafe-inline'; script-src '" + std::string(script_hash()) +
                              "'; base-uri 'none'; form-action 'none'"));
  EXPECT_THAT(std::string(script()), Not(HasSubstr("</script")));
  EXPECT_THAT(std::string(style_sheet()), Not(HasSubstr("</style")));
}

// Text in every place of a report. An unescaped markup character adds a tag or an attribute to the page.
Report with_text(const std::string& text) {
  Report report = holding_report();
  report.host.host_name = report.run.tool_version = report.run.injected = report.run.tier = text;
  report.run.argv = report.run.suites = {text};
  report.run.env = report.run.build = {{text, text}};
  report.run.devices.front().name = text;
  report.run.devices.front().properties = report.run.devices.front().libraries = {{text, text}};
  for (CaseRecord& record : report.cases) {
    record.c.suite = record.c.workload = record.c.recipe = record.c.label = record.id = text;
    record.c.dims = {{text, 1}};
    record.reason = record.verdict == Verdict::pass ? "" : text;
    record.rerun = record.implementation = text;
    record.summary.flags = {text};
    for (OpParity& op : record.parity.ops) op.label = op.kind = op.implementation = op.reason = text;
    for (OpShare& op : record.derived.breakdown) op.label = op.kind = text;
  }
  return report;
}

TEST(Document, HostileTextStaysText) {
  const std::string harmless = page_of(with_text("harmless"));
  for (const std::string& text : hostile_texts()) {
    if (text.empty()) continue;  // without text some facts have no row
    const std::string page = page_of(with_text(text));
    EXPECT_EQ(count_of(page, "<script"), 1U) << text.substr(0, 40);
    EXPECT_EQ(count_of(page, "<!--"), 0U) << text.substr(0, 40);
    EXPECT_EQ(page.find('\x1b'), std::string::npos) << text.substr(0, 40);
    EXPECT_EQ(count_of(page, "<tr>"), count_of(harmless, "<tr>")) << text.substr(0, 40);
    EXPECT_EQ(count_of(page, "<td"), count_of(harmless, "<td")) << text.substr(0, 40);
    EXPECT_EQ(count_of(page, "<dd"), count_of(harmless, "<dd")) << text.substr(0, 40);
  }
}

TEST(Document, DrawingsHaveNamesThatAreFileNames) {
  const std::vector<Report> reports{large_report(200)};
  std::set<std::string> names;
  for (const Drawing& drawing : report_drawings(reports)) {
    EXPECT_TRUE(std::all_of(drawing.name.begin(), drawing.name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    })) << drawing.name;
    EXPECT_TRUE(names.insert(drawing.name).second) << drawing.name;
    EXPECT_THAT(drawing.svg, ::testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  }
  EXPECT_GT(names.size(), 10U);
  EXPECT_EQ(names.count("roofline-bf16"), 1U);
}

TEST(Document, SeveralReportsAreNamedByDeviceAndDateAndDifferencesAreMarked) {
  std::vector<Report> reports{made_report({made_gemm(100)}), made_report({made_gemm(100)})};
  reports[1].run.devices.front().name = "Another Device";
  const std::string page = report_page(reports);
  EXPECT_TRUE(holds(page, "A: A Device, 2026-11-21 02:34 UTC"));
  EXPECT_TRUE(holds(page, "B: Another Device, 2026-11-21 02:34 UTC"));
  EXPECT_TRUE(
      holds(page, "<th scope=\"row\">name</th><td>A Device</td><td>Another Device</td><td class=\"differs\">differs"));
}

TEST(Document, RatiosOfSeveralReportsFollowTheSummary) {
  const std::vector<Report> reports{made_report({made_gemm(100)}), made_report({made_gemm(100)})};
  const std::string page = report_page(reports);
  const std::size_t ratios = page.find("<h2>How much faster</h2>");
  ASSERT_NE(ratios, std::string::npos);
  EXPECT_GT(ratios, page.find("<nav "));
  EXPECT_LT(ratios, page.find("<section id=\"throughput\""));
  EXPECT_FALSE(holds(page_of(reports[0]), "How much faster"));
}

TEST(Document, ALabelStandsBesideTheLetterOfItsReport) {
  const std::vector<Report> reports{made_report({made_gemm(100)}), made_report({made_gemm(100)})};
  PageOptions options;
  options.labels = {{"A", "before"}, {"B", "<b>after</b>"}};
  const std::string page = report_page(reports, options);
  EXPECT_TRUE(holds(page, "<b>A (before)</b>"));
  EXPECT_TRUE(holds(page, "B (&lt;b&gt;after&lt;/b&gt;) against A (before)"));
  EXPECT_TRUE(holds(page, "A: before, A Device, 2026-11-21 02:34 UTC"));
  EXPECT_FALSE(holds(page, "<b>after</b>"));
}

TEST(Document, APassWithUnreliableTimingsShowsHowManyAndWhy) {
  CaseRecord unsure = made_gemm(200);
  unsure.summary.ci95_high_ns = 2e6;
  const std::string page = page_of(made_report({made_gemm(100), unsure}));
  EXPECT_TRUE(
      holds(page,
            "<b>PASS</b> <span>2 of 2 cases passed</span> <span class=\"doubt\">1 of 2 timings unreliable: rounds "
            "differ too much; --preset normal runs more of them</span>"));
  EXPECT_FALSE(holds(page_of(made_report({made_gemm(100)})), "timings unreliable"));
}

TEST(Document, FlagsVerdictsAndIdsAreExplainedWhereTheyAreShown) {
  CaseRecord unsure = made_gemm(200);
  unsure.summary.flags = {"noisy", "severe"};
  const std::string page =
      page_of(made_report({made_gemm(100), unsure, with_verdict(made_gemm(300), Verdict::downgraded, "tf32")}));
  const std::string words = page.substr(page.find("<h2>All cases"));
  EXPECT_TRUE(holds(words, "<dt>noisy</dt><dd>the 95% interval is wider than +-25% of the time"));
  EXPECT_TRUE(holds(words, "<dt>severe</dt><dd>more than 5% of the samples"));
  EXPECT_TRUE(
      holds(words, "<dt>downgraded</dt><dd>an op computes in less than the declared precision: a probe read it"));
  EXPECT_TRUE(holds(words, "<dt>case</dt><dd>suite/workload/dimensions/precision[/modes]/xranks"));
  EXPECT_FALSE(holds(words, "<dt>drift"));
}

TEST(Document, ArithmeticThatWasReadStandsBesideItsRate) {
  CaseRecord slow = made_gemm(100), fast = made_gemm(200);
  for (CaseRecord* record : {&slow, &fast}) {
    PlanArithmetic& plan = record->parity.arithmetic.emplace().emplace_back();
    plan.kind = "gemm";
    plan.implementation = "a library";
    plan.unit = "Hopper or Blackwell";
    plan.inputs = "exact";
    plan.bits = 24;
    plan.rounding = "cut";
    plan.at_once = 16;
    plan.order = "16 at once, in order <b>";
  }
  fast.derived.headline = 4.0 * slow.derived.headline;
  const std::string page = page_of(made_report({slow, fast}));
  const std::string table = page.substr(page.find("<h3>Arithmetic"));
  EXPECT_TRUE(holds(table, "Arithmetic of 2 plans"));
  for (const char* cell : {"Hopper or Blackwell", "24 bits, cut, 16 at once", "16 at once, in order &lt;b&gt;"})
    EXPECT_TRUE(holds(table, cell)) << cell;
  EXPECT_TRUE(holds(table, fast.key())) << "plans that read alike share a row, with the fastest case";
  EXPECT_FALSE(holds(page_of(made_report({made_gemm(100)})), "<h3>Arithmetic"));
}

// Not folded, for prints and for browsers without scripts.
TEST(Document, TheTableOfAllCasesIsOpen) {
  const std::string page = page_of(made_report({made_gemm(100)}));
  const std::string cases = page.substr(page.find("<h2>All cases"));
  const std::size_t table = cases.find("<div class=\"cases\">");
  ASSERT_NE(table, std::string::npos);
  EXPECT_EQ(cases.substr(0, table).find("<details"), std::string::npos);
  for (const char* column : {"verdict", "case", "rate", "time", "±95%", "error / bound", "flags"})
    EXPECT_TRUE(holds(cases, fmt::format("<th scope=\"col\">{}</th>", column)) ||
                holds(cases, fmt::format("data-unit=\"s\">{}</th>", column)))
        << column;
}

TEST(Document, WhatIsNoDefaultIsSaid) {
  Report report = made_report({made_gemm(100)});
  report.run.seed = 7;
  report.run.deterministic = true;
  report.run.arithmetic = {"tf32"};
  report.run.env = {{"OMP_NUM_THREADS", "2"}};
  report.run.argv = {"--suite", "gemm"};
  const std::string page = page_of(report);
  EXPECT_TRUE(holds(page, "<th scope=\"row\">seed</th><td>7, not 42</td>"));
  EXPECT_TRUE(holds(page, "<th scope=\"row\">deterministic</th>"));
  EXPECT_TRUE(holds(page, "<th scope=\"row\">accepted arithmetic</th><td>tf32</td>"));
  EXPECT_TRUE(holds(page, "<th scope=\"row\">variable OMP_NUM_THREADS</th><td>2</td>"));
  EXPECT_TRUE(holds(page, "<th scope=\"row\">command line</th><td>--suite gemm</td>"));
  EXPECT_FALSE(holds(page_of(made_report({made_gemm(100)})), "Set for this run"));
}

// Clocks in MHz of two rounds, by minimum, median and maximum: 1400 and 1500 +- 10 have the median 1450.
TEST(Document, WhatTheSensorsToldWhileItMeasuredIsAFactOfTheEnvironment) {
  CaseRecord record = made_gemm(100);
  record.rounds.resize(2);
  for (RoundRecord& round : record.rounds) {
    RoundTelemetry& t = round.telemetry.emplace();
    const double mhz = &round == record.rounds.data() ? 1400.0 : 1500.0;
    t.sm_mhz = Spread{mhz - 10, mhz, mhz + 10};
    t.power_w = 300.0;
    t.cpu_pressure = 0.125;
    t.reasons = {"idle"};
  }
  record.rounds[1].telemetry->reasons = {"sw_power_cap"};
  record.rounds[1].telemetry->rejected = 3;
  const std::string page = page_of(made_report({record}));
  for (const auto& [fact, value] :
       std::map<std::string, std::string>{{"SM clock", "1450 MHz, 1390 to 1510"},
                                          {"power", "300 W, 300 to 300"},
                                          {"waiting for a processor", "12.5%, 12.5 to 12.5"},
                                          {"clocks lower: sw_power_cap", "in 1 of 2 rounds"},
                                          {"rounds run again", "3"}})
    EXPECT_TRUE(holds(page, fmt::format("<th scope=\"row\">{}</th><td>{}</td>", fact, value))) << fact;
  EXPECT_FALSE(holds(page, "clocks lower: idle"));
  EXPECT_FALSE(holds(page_of(made_report({made_gemm(100)})), "While it measured"));
}

constexpr std::size_t max_bytes = 1'500'000;

TEST(Document, AWholeRunFitsIntoAMegabyteAndAHalf) {
  EXPECT_LE(page_of(large_report(170)).size(), max_bytes);
  EXPECT_LE(page_of(large_report(1000)).size(), max_bytes);
}

}  // namespace
}  // namespace gpubench::page

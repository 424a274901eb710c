#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/report_page.h"
#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A product of 1e9 FLOP times `tera` in the made case's 1 ms.
CaseRecord at_rate(double tera, std::int64_t n, const std::string& recipe = "f32") {
  return with_rate(made_case("matmul", {{"m", n}, {"n", n}, {"k", n}}, recipe), tera * 1e9, 1e6);
}

// A 95% interval of 0.9 to 2 ms around 1 ms: 55% to either side on average; 25% is reliable.
CaseRecord unreliable_timing(CaseRecord record) {
  record.summary.ci95_high_ns = 2e6;
  return record;
}

std::vector<CaseRecord> failing(std::int64_t count, const std::string& reason) {
  std::vector<CaseRecord> cases;
  for (std::int64_t n = 1; n <= count; ++n) cases.push_back(with_verdict(made_gemm(n), Verdict::fail, reason));
  return cases;
}

std::string summary_of(const std::vector<Report>& reports) {
  const std::string page = report_page(reports);
  const std::size_t begin = page.find("<main id=\"main\">\n<section id=\"summary\"");
  const std::size_t end = page.find("<nav ");
  if (begin == std::string::npos || end < begin) return "no summary between the start of main and the navigation";
  return page.substr(begin, end - begin);
}
std::string summary_of(std::vector<CaseRecord> cases) { return summary_of({made_report(std::move(cases))}); }

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

DataTable bests_of(std::vector<CaseRecord> cases) {
  const std::vector<Report> reports{made_report(std::move(cases))};
  return bests_table(sides_of(reports));
}

TEST(Summary, HasVerdictBestRatesFailuresAndMachineInThisOrder) {
  const std::string summary = summary_of({at_rate(8, 200), with_verdict(at_rate(9, 300), Verdict::fail, "wrong")});
  std::size_t before = 0;
  for (const char* part : {"<b>FAIL</b> <span>1 of 2 cases passed</span>", "<b>1</b> fail", "<h2>Best rates</h2>",
                           "<tr><td>gemm</td><td>8.00 TFLOP/s f32</td><td>matmul m=200,n=200,k=200</td></tr>",
                           "<h2>Failed cases</h2>", "<span>wrong</span>", "<h2>Machine</h2>", "gpubench 0.1.0"}) {
    const std::size_t at = summary.find(part, before);
    ASSERT_NE(at, std::string::npos) << part << " is missing or out of order in\n" << summary;
    before = at;
  }
}

TEST(Summary, ARunWithNothingPassingHasNoBestRate) {
  const std::string summary = summary_of(failing(2, "wrong"));
  EXPECT_THAT(summary, HasSubstr("<b>FAIL</b> <span>0 of 2 cases passed</span>"));
  EXPECT_THAT(summary,
              HasSubstr("<h2>Best rates</h2>\n<p>No case passed with a reliable timing and a cold cache.</p>"));
  EXPECT_THAT(summary, Not(HasSubstr("<table")));
}

TEST(Summary, ARunWithoutFailuresShowsThat) {
  const std::string summary = summary_of({at_rate(8, 200)});
  EXPECT_THAT(summary, HasSubstr("<h2>Failed cases</h2>\n<p>Nothing failed.</p>"));
  EXPECT_THAT(summary, Not(HasSubstr("href=")));
}

TEST(Summary, FiveOfFortyFailuresAreNamedAndTheRestLinked) {
  const std::string named = "<li><b class=\"tag\">FAIL</b> <code>gemm/";
  const std::string forty = summary_of(failing(40, "wrong"));
  EXPECT_EQ(times_in(forty, named), 5U);
  EXPECT_THAT(forty, HasSubstr("<a href=\"#checks\">and 35 more</a>"));
  EXPECT_EQ(times_in(report_page(std::vector<Report>{made_report(failing(40, "wrong"))}), "<article"), 40U);
  const std::string five = summary_of(failing(5, "wrong"));
  EXPECT_EQ(times_in(five, named), 5U);
  EXPECT_THAT(five, Not(HasSubstr(" more</a>")));
}

TEST(Summary, AReasonIsShortenedAndStaysText) {
  const std::string summary = summary_of(failing(1, "<b>" + std::string(200, 'x')));
  EXPECT_THAT(summary, HasSubstr("<span>&lt;b&gt;" + std::string(94, 'x') + "...</span>"));  // 100 bytes in all
}

TEST(Summary, DowngradedUnprovenAndBrokenCasesAreFailedCases) {
  const std::string summary = summary_of({with_verdict(made_gemm(1), Verdict::downgraded, "tf32"),
                                          with_verdict(made_gemm(2), Verdict::not_proven, "nothing compared"),
                                          with_verdict(made_gemm(3), Verdict::error, "crashed"),
                                          with_verdict(made_gemm(4), Verdict::unsupported, "no f32 here"),
                                          with_verdict(made_gemm(5), Verdict::skipped, "no room")});
  for (const char* named : {">DOWNGRADED</b>", ">NOT PROVEN</b>", ">ERROR</b>"})
    EXPECT_THAT(summary, HasSubstr("<li><b class=\"tag\"" + std::string(named)));
  EXPECT_EQ(times_in(summary, "class=\"tag\""), 3U);
}

TEST(BestRates, UnreliableWarmVirtualAndFailedCasesDoNotCount) {
  CaseRecord warm = at_rate(90, 400);
  warm.c.cache = CacheMode::warm;
  CaseRecord virtual_ranks = at_rate(80, 500);
  virtual_ranks.c.modes = {"virtual"};
  const DataTable table =
      bests_of({at_rate(2, 100), unreliable_timing(at_rate(50, 200)),
                with_verdict(at_rate(70, 300), Verdict::not_proven, "nothing compared"), warm, virtual_ranks});
  EXPECT_THAT(column_of(table, "best rate"), ElementsAre("2.00 TFLOP/s f32"));
  EXPECT_THAT(column_of(table, "case"), ElementsAre("matmul m=100,n=100,k=100"));
}

TEST(BestRates, ASuiteWithoutAReliableTimingHasADash) {
  const CaseRecord convolution = with_rate(made_case("conv2d_forward", {{"n", 1}}, "f32", "conv"), 2e9, 1e6);
  const DataTable table = bests_of({unreliable_timing(at_rate(50, 200)), convolution});
  EXPECT_THAT(column_of(table, "suite"), ElementsAre("gemm", "conv"));
  EXPECT_THAT(column_of(table, "best rate"), ElementsAre("-", "2.00 TFLOP/s f32"));
  EXPECT_THAT(column_of(table, "case"), ElementsAre("-", "conv2d_forward n=1"));
}

// Two cases in FLOP/s, one of 1e6 B in 1 ms, and launches with the largest number.
TEST(BestRates, ASuiteHasItsBestInItsMostFrequentUnit) {
  CaseRecord two_ranks = at_rate(8, 100, "bf16");
  two_ranks.c.ranks = 2;
  two_ranks.c.label = "gpt2-124m qkv";
  const DataTable table = bests_of({at_rate(2, 100), two_ranks, with_rate(made_case("copy", {{"n", 1}}), 0, 1e6, "B/s"),
                                    with_rate(made_case("chain", {{"ops", 4}}), 4, 32, "launches/s", 1e12)});
  EXPECT_THAT(column_of(table, "best rate"), ElementsAre("8.00 TFLOP/s bf16 x2"));
  EXPECT_THAT(column_of(table, "case"), ElementsAre("matmul gpt2-124m qkv"));
}

TEST(BestRates, SeveralReportsHaveAColumnEach) {
  const CaseRecord convolution = with_rate(made_case("conv2d_forward", {{"n", 1}}, "f32", "conv"), 2e9, 1e6);
  const std::vector<Report> reports{made_report({at_rate(2, 100)}), made_report({convolution, at_rate(4, 100)})};
  const DataTable table = bests_table(sides_of(reports));
  EXPECT_THAT(column_of(table, "suite"), ElementsAre("gemm", "conv"));
  EXPECT_THAT(column_of(table, "A"), ElementsAre("2.00 TFLOP/s f32", "-"));
  EXPECT_THAT(column_of(table, "B"), ElementsAre("4.00 TFLOP/s f32", "2.00 TFLOP/s f32"));
  EXPECT_EQ(table.columns.size(), 3U);
}

TEST(Machine, IsAFewLines) {
  Report report = made_report({at_rate(8, 200)});
  report.run.devices.front().properties = {{"driver", "580.65.06"}};
  EXPECT_THAT(summary_of(std::vector<Report>{report}),
              HasSubstr("<h2>Machine</h2>\n<ul>\n"
                        "<li>4 SMs, 80.0 GB of memory, driver 580.65.06, cuBLASLt 13.1</li>\n"
                        "<li>host a-host, 8 processors</li>\n"
                        "<li>2026-11-21 02:34 UTC, tier standard, gpubench 0.1.0</li>\n</ul>"));
}

TEST(Machine, EqualDevicesAreCounted) {
  Report report = made_report({at_rate(8, 200)});
  report.run.devices.assign(3, report.run.devices.front());
  report.run.devices.back().name = "<b>Another</b>";
  const std::string summary = summary_of(std::vector<Report>{report});
  EXPECT_THAT(summary, HasSubstr("<li>2 x A Device, 4 SMs, 80.0 GB of memory, cuBLASLt 13.1</li>"));
  EXPECT_THAT(summary, HasSubstr("<li>&lt;b&gt;Another&lt;/b&gt;, 4 SMs, 80.0 GB of memory, cuBLASLt 13.1</li>"));
}

TEST(Summary, SeveralReportsHaveAVerdictAndAMachineEach) {
  const std::string summary = summary_of({made_report({at_rate(8, 200)}), made_report(failing(1, "wrong"))});
  EXPECT_THAT(summary, HasSubstr("<h2>A: A Device, 2026-11-21 02:34 UTC</h2><p class=\"word\"><b>PASS</b>"));
  EXPECT_THAT(summary, HasSubstr("<h2>B: A Device, 2026-11-21 02:34 UTC</h2><p class=\"word\"><b>FAIL</b>"));
  EXPECT_THAT(summary, HasSubstr("<b class=\"tag\">FAIL</b> B <code>gemm/"));
  EXPECT_EQ(times_in(summary, "<li><b>A</b> 4 SMs"), 1U);
  EXPECT_EQ(times_in(summary, "<li><b>B</b> 4 SMs"), 1U);
  EXPECT_EQ(times_in(summary, "host a-host, 8 processors"), 2U);
}

}  // namespace
}  // namespace gpubench::page

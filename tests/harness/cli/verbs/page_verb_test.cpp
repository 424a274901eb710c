#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/cli/report_outputs.h"
#include "harness/page/report_page.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/sample_records.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PageVerb : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    std::filesystem::create_directories("made");
    write("made/good.json", dump(report_json(holding_report())));
  }
  int run(const Words& words) { return cli_.run("report" + words); }
  Captured cli_;
};

// EXPECT_EQ on strings would print whole pages.
TEST_F(PageVerb, ThePageStandsBesideTheFirstReport) {
  EXPECT_EQ(run("made/good.json"), 0) << cli_.err.str();
  const Report report = holding_report();
  EXPECT_TRUE(content_of("made/report.html") == page::report_page({&report, 1}));
  EXPECT_EQ(cli_.out.str(), "");
  EXPECT_THAT(cli_.err.str(), StartsWith("made/report.html: "));
}

TEST_F(PageVerb, SeveralReportsMakeOnePage) {
  write("other.json", dump(report_json(holding_report())));
  EXPECT_EQ(run("made/good.json other.json -o both.html"), 0) << cli_.err.str();
  const std::vector<Report> reports{holding_report(), holding_report()};
  EXPECT_TRUE(content_of("both.html") == page::report_page(reports));
  EXPECT_FALSE(std::filesystem::exists("made/report.html"));
}

TEST_F(PageVerb, LabelsNameTheReportsOfAComparison) {
  write("other.json", dump(report_json(holding_report())));
  EXPECT_EQ(run("made/good.json other.json -o both.html --label A=before --label B=after"), 0) << cli_.err.str();
  const std::vector<Report> reports{holding_report(), holding_report()};
  page::PageOptions options;
  options.labels = {{"A", "before"}, {"B", "after"}};
  EXPECT_TRUE(content_of("both.html") == page::report_page(reports, options));
}

TEST_F(PageVerb, ALabelThatNamesNoReportIsRefused) {
  write("other.json", dump(report_json(holding_report())));
  const auto refusal = [](const Words& more) { return refusal_of("report made/good.json" + more); };
  EXPECT_THAT(refusal("other.json --label before"), HasSubstr("'before' is not a label such as A=before"));
  EXPECT_THAT(refusal("other.json --label A="), HasSubstr("'A=' is not a label such as A=before"));
  EXPECT_THAT(refusal("other.json --label C=x"), HasSubstr("no report is called 'C'; there are A, B"));
  EXPECT_THAT(refusal("other.json --label A=x --label A=y"), HasSubstr("A is named twice"));
  EXPECT_THAT(refusal("--label A=x"), HasSubstr("a single report has no letter"));
  EXPECT_FALSE(std::filesystem::exists("made/report.html"));
}

TEST_F(PageVerb, EachChartIsAFileOfItsOwnWhereAskedFor) {
  EXPECT_EQ(run("made/good.json --svg charts/deep"), 0) << cli_.err.str();
  const std::vector<Report> reports{holding_report()};
  const std::vector<page::Drawing> drawings = page::report_drawings(reports);
  ASSERT_FALSE(drawings.empty());
  for (const page::Drawing& drawing : drawings)
    EXPECT_EQ(content_of("charts/deep/" + drawing.name + ".svg"), drawing.svg);
}

TEST_F(PageVerb, OtherFormsGoToFilesOrOneToStandardOutput) {
  EXPECT_EQ(run("made/good.json --csv - --junit j.xml --markdown m.md"), 0) << cli_.err.str();
  EXPECT_EQ(cli_.out.str(), exported_csv(holding_report()));
  EXPECT_EQ(content_of("j.xml"), junit_text(holding_report()));
  EXPECT_EQ(content_of("m.md"), markdown_text(holding_report(), 900U << 10U));
}

TEST_F(PageVerb, APriceAddsWhatTheWorkCosts) {
  EXPECT_EQ(run("made/good.json --price-per-hour 2.5"), 0) << cli_.err.str();
  EXPECT_TRUE(content_of("made/report.html").find("at 2.5 per device and hour") != std::string::npos);
  for (const char* price : {"0", "-1", "nan", "2.5x", "1e99", ""}) {
    Captured cli;
    EXPECT_EQ(cli.run({"report", "made/good.json", "--price-per-hour", price}), 2) << price;
  }
}

TEST_F(PageVerb, AFileThatDoesNotHoldIsNamedAndTheOldPageStays) {
  write("made/report.html", "old");
  write("made/bad.json", "{}");
  EXPECT_EQ(run("made/bad.json"), 2);
  EXPECT_THAT(cli_.err.str(), StartsWith("gpubench: made/bad.json:(root): lacks \"context\""));
  EXPECT_THAT(exits(2, ran("report made/missing.json")).err, HasSubstr("made/missing.json:(root): cannot be opened"));
  EXPECT_EQ(content_of("made/report.html"), "old");
}

TEST_F(PageVerb, WhatCannotBeDoneIsAUsageError) {
  const auto refusal = [](const Words& words) { return refusal_of("report" + words); };
  EXPECT_EQ(refusal({}), "gpubench: report needs at least one report to read\n");
  EXPECT_EQ(refusal("made/good.json made/good.json --csv x"), "gpubench: --csv takes one report, 2 were given\n");
  EXPECT_THAT(refusal("made/good.json -o no/such/folder/x.html"),
              StartsWith("gpubench: --output: no/such/folder/x.html: cannot"));
  EXPECT_THAT(refusal("made/good.json --csv x -o x"), HasSubstr("--output: --csv writes x already"));
  EXPECT_THAT(refusal("made/good.json --svg made/good.json"), HasSubstr("made/good.json: cannot create the folder"));
  EXPECT_THAT(refusal("made/good.json --csv - --junit -"), HasSubstr("already uses standard output"));
}

TEST_F(PageVerb, ARunLeavesItsPageBesideItsReport) {
  Captured cli;
  EXPECT_EQ(cli.run("--isolate off --tier smoke --out run --progress none"), 0) << cli.err.str();
  EXPECT_THAT(cli.out.str(), HasSubstr("page     run/report.html\nreport   run/report.json\n"));
  EXPECT_THAT(content_of("run/report.html"), StartsWith("<!DOCTYPE html>"));
}

TEST_F(PageVerb, APageThatCannotBeWrittenIsToldAndTakesNothingFromTheReport) {
  std::ostringstream out, err;
  const StopFlag stop{0};
  const auto unset = [](const char*) { return std::string(); };
  const auto no_driver = [](double) { return NvidiaDriver{}; };
  const Environment environment{sim_suites(), {}, out, err, false, false, 80, unset, no_driver, "", stop};
  Destination destination;
  destination.file = "report.json";
  destination.page_file = "no/such/folder/report.html";
  const Options options;
  ReportOutputs outputs(holding_report(), options, destination, environment);
  outputs.write();
  EXPECT_TRUE(outputs.lost());
  EXPECT_EQ(outputs.page_path(), "");
  ASSERT_EQ(outputs.complaints().size(), 1U);
  EXPECT_THAT(outputs.complaints().front(), StartsWith("the page is lost: no/such/folder/report.html: cannot "));
  EXPECT_EQ(outputs.report_path(), "report.json");
  EXPECT_EQ(content_of("report.json"), report_json_text(holding_report()));
}

TEST_F(PageVerb, AReportOnStandardOutputLeavesNoPage) {
  EXPECT_EQ(Captured().run("--isolate off --tier smoke --json - --progress none"), 0);
  EXPECT_FALSE(std::filesystem::exists("report.html"));
  EXPECT_FALSE(std::filesystem::exists("gpubench-out"));
}

}  // namespace
}  // namespace gpubench

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/export.h"
#include "harness/report/json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/malformed_reports.h"
#include "tests/harness/report/sample_records.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReportVerbs : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    write("good.json", dump(report_json(holding_report())));
  }
  Captured cli_;
};

TEST_F(ReportVerbs, AReportOfARunHolds) {
  Captured run;
  run.script = "wrong_element@first.gemm;unsupported@last.add";
  EXPECT_EQ(run.run("--isolate off --tier smoke --json run.json --progress none"), 1);
  EXPECT_EQ(cli_.run("validate run.json good.json"), 0) << cli_.out.str();
  EXPECT_EQ(cli_.out.str(), "run.json: valid\ngood.json: valid\n");
}

TEST_F(ReportVerbs, AReportWithoutAnyCheckHolds) {
  Captured run;
  EXPECT_EQ(run.run("--isolate off --tier smoke --check off --json run.json"), 0);
  EXPECT_EQ(cli_.run("validate run.json"), 0) << cli_.out.str();
}

TEST_F(ReportVerbs, AnInterruptedReportHolds) {
  Captured run;
  run.stop = 2;
  EXPECT_EQ(run.run("--isolate off --tier smoke --json run.json"), 130);
  EXPECT_EQ(cli_.run("validate run.json"), 0) << cli_.out.str();
}

TEST_F(ReportVerbs, EveryMalformedFileExitsTwoWithPathAndReason) {
  std::vector<MalformedFile> files = malformed_bytes();
  for (MalformedFile& file : contradictory_reports()) files.push_back(std::move(file));
  for (MalformedFile& file : malformed_members()) files.push_back(std::move(file));
  for (const MalformedFile& file : files) {
    write("bad.json", file.bytes);
    Captured cli;
    EXPECT_EQ(cli.run("validate bad.json"), 2) << file.name;
    EXPECT_THAT(cli.out.str(), StartsWith("bad.json:" + file.path)) << file.name;
    EXPECT_THAT(cli.out.str(), HasSubstr(": ")) << file.name;
    EXPECT_EQ(cli.out.str().find('\x1b'), std::string::npos) << file.name;
  }
}

TEST_F(ReportVerbs, AllFilesAreLookedAtAndOneThatDoesNotHoldDecides) {
  write("bad.json", "{}");
  EXPECT_EQ(cli_.run("validate bad.json missing.json good.json"), 2);
  EXPECT_EQ(cli_.out.str(),
            "bad.json:(root): lacks \"context\"\n"
            "missing.json:(root): cannot be opened for reading: No such file or directory\n"
            "good.json: valid\n");
}

TEST_F(ReportVerbs, AfterFiftyProblemsTheOthersAreCounted) {
  Json report = report_json(holding_report());
  report["context"]["gpubench"]["argv"] = Json(80, 1);
  write("bad.json", report.dump());
  EXPECT_EQ(cli_.run("validate bad.json"), 2);
  EXPECT_THAT(cli_.out.str(), EndsWith("argv[49]: is number, expected a string\nbad.json: and 30 more\n"));
  report["context"]["gpubench"]["argv"] = Json(100000, 1);
  write("bad.json", report.dump());
  EXPECT_EQ(cli_.run("validate bad.json"), 2);
  EXPECT_THAT(cli_.out.str(), EndsWith("bad.json: and at least 950 more\n"));
}

TEST_F(ReportVerbs, WithoutAFileIsAUsageError) {
  EXPECT_EQ(cli_.run("validate"), 2);
  EXPECT_EQ(cli_.run("export --format csv"), 2);
  EXPECT_EQ(cli_.run("export --format csv good.json good.json"), 2);
  EXPECT_EQ(cli_.out.str(), "");
  EXPECT_EQ(cli_.err.str(),
            "gpubench: validate needs at least one report to read\n"
            "gpubench: export takes one report, 0 were given\n"
            "gpubench: export takes one report, 2 were given\n");
}

TEST_F(ReportVerbs, AnUnknownFormatNamesTheKnownOnes) {
  EXPECT_EQ(cli_.run("export --format gbenhc good.json"), 2);
  EXPECT_EQ(cli_.run("export good.json"), 2);
  EXPECT_EQ(
      cli_.err.str(),
      "gpubench: --format: 'gbenhc' is not one of report, gbench, gbench-summary, bmf, action-smaller, action-bigger, "
      "csv, csv-cases, "
      "prometheus; did you mean 'gbench'?\n"
      "gpubench: export needs --format, one of report, gbench, gbench-summary, bmf, action-smaller, action-bigger, "
      "csv, "
      "csv-cases, "
      "prometheus\n");
}

TEST_F(ReportVerbs, AnExportGoesToStandardOutputAloneOrToAFile) {
  for (const ExportFormat format : enum_values<ExportFormat>) {
    const std::string word(name(format));
    Captured out;
    EXPECT_EQ(out.run({"export", "--format", word, "good.json"}), 0);
    EXPECT_EQ(out.out.str(), exported(holding_report(), format));
    EXPECT_EQ(out.err.str(), "");
    const ChildResult file = exits(0, ran({"export", "--format", word, "good.json", "-o", "exported", "--force"}));
    EXPECT_EQ(file.out, "");
    EXPECT_EQ(content_of("exported"), out.out.str());
  }
}

TEST_F(ReportVerbs, WhatDoesNotHoldIsNotExportedAndTheOldFileStays) {
  Json report = report_json(holding_report());
  report["gpubench"]["cases"][0]["summary"]["median_ns"] = 1.0;
  write("bad.json", report.dump());
  write("exported", "old");
  EXPECT_EQ(cli_.run("export --format bmf bad.json -o exported"), 2);
  EXPECT_THAT(cli_.err.str(), StartsWith("gpubench: bad.json:gpubench.cases[0].summary.median_ns: is 1, but"));
  EXPECT_EQ(content_of("exported"), "old");
}

TEST_F(ReportVerbs, APlaceThatCannotBeWrittenIsAUsageError) {
  EXPECT_EQ(cli_.run("export --format csv good.json -o no/such/folder/x.csv"), 2);
  EXPECT_THAT(cli_.err.str(), StartsWith("gpubench: --output: no/such/folder/x.csv: cannot "));
}

TEST_F(ReportVerbs, APinnedReportThatDoesNotHoldIsAUsageError) {
  Json report = report_json(holding_report());
  report["gpubench"]["totals"]["pass"] = 7;
  write("bad.json", report.dump());
  EXPECT_EQ(cli_.run("--isolate off --tier smoke --pin bad.json --json -"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--pin: bad.json:gpubench.totals.pass: is 7, but the cases make 1"));
}

}  // namespace
}  // namespace gpubench

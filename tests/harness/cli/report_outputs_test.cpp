// The forms of a run's report: JUnit, CSV, Markdown, GitHub.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/report/report_json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/format_readers.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RunOutputs : public ScratchFolder {
 protected:
  int run(const Words& more) {
    cli_.variables["TMPDIR"] = ".";
    return cli_.run("--isolate off --tier smoke --filter last|first --force" + more);
  }
  void in_github() {
    cli_.variables["GITHUB_ACTIONS"] = "true";
    cli_.variables["GITHUB_STEP_SUMMARY"] = "summary.md";
  }

  Captured cli_;
};

TEST_F(RunOutputs, EachFormGoesToItsFileBesideTheUsualFolder) {
  EXPECT_EQ(run("--junit r.xml --csv r.csv --markdown r.md --out o"), 0);
  std::string problem;
  const auto junit = read_xml(content_of("r.xml"), problem);
  ASSERT_TRUE(junit) << problem;
  EXPECT_EQ(junit->attributes.at("tests"), "2");
  EXPECT_THAT(content_of("r.csv"), StartsWith("case,suite,workload,params,"));
  EXPECT_THAT(content_of("r.csv"), HasSubstr("\r\nsim/last/n=8/f32/x1,sim,last,"));
  EXPECT_THAT(content_of("r.md"), StartsWith("### gpubench: PASS\n\n2 pass of 2 cases\n"));
  EXPECT_TRUE(std::filesystem::exists("o/report.json"));
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("VERDICT  PASS"), Not(HasSubstr("<testsuites"))));
}

// "sim/chain" has three ops, each judged alone and in the timed launch.
TEST_F(RunOutputs, AReportIsBriefUnlessFullDetailIsAskedFor) {
  EXPECT_EQ(cli_.run("--isolate off --filter sim/chain --json brief.json"), 0);
  EXPECT_EQ(cli_.run("--isolate off --filter sim/chain --json full.json --detail full"), 0);
  EXPECT_EQ(cli_.run("export --format report full.json -o shorter.json"), 0);
  const auto parity_of = [](const char* file) { return read_report(file).cases.front().parity; };
  EXPECT_GE(parity_of("full.json").ops.size(), 6U);
  EXPECT_FALSE(parity_of("full.json").passed);
  for (const char* file : {"brief.json", "shorter.json"}) {
    EXPECT_LT(parity_of(file).ops.size(), 6U) << file;
    EXPECT_TRUE(parity_of(file).passed) << file;
  }
}

TEST_F(RunOutputs, AVariableStandsInForEachFlag) {
  cli_.variables = {{"GPUBENCH_JUNIT", "r.xml"}, {"GPUBENCH_CSV", "r.csv"}, {"GPUBENCH_MARKDOWN", "r.md"}};
  EXPECT_EQ(run("--json r.json"), 0);
  for (const char* file : {"r.json", "r.xml", "r.csv", "r.md"}) EXPECT_TRUE(std::filesystem::exists(file)) << file;
}

TEST_F(RunOutputs, StandardOutputIsTheOneDocumentThatWasGivenADash) {
  for (const auto& [flag, start] :
       {std::pair{"--junit", "<?xml "}, {"--csv", "case,"}, {"--markdown", "### gpubench"}}) {
    cli_.out.str("");
    EXPECT_EQ(run({flag, "-", "--json", "r.json"}), 0);
    EXPECT_THAT(cli_.out.str(), AllOf(StartsWith(start), Not(HasSubstr("VERDICT"))));
  }
  EXPECT_THAT(cli_.err.str(), HasSubstr("VERDICT  PASS"));
}

TEST_F(RunOutputs, TwoDashesOrTwoFormsInOneFileAreRefusedBeforeAnythingRuns) {
  cli_.script = "kill@first.gemm";  // fails if a case starts
  EXPECT_EQ(run("--junit - --csv -"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--csv: --junit already uses standard output; at most one flag can be -"));
  EXPECT_EQ(run("--json - --markdown -"), 2);
  EXPECT_EQ(run("--junit a --csv ./a"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--csv: --junit writes ./a already"));
  EXPECT_EQ(run("--out o --junit o/report.json"), 2);
}

TEST_F(RunOutputs, APlaceThatCannotBeWrittenIsKnownBeforeTheFirstCase) {
  cli_.script = "kill@first.gemm";
  for (const char* flag : {"--junit", "--csv", "--markdown"}) {
    EXPECT_EQ(run({flag, "no/such/folder/file"}), 2);
    EXPECT_THAT(cli_.err.str(), HasSubstr(std::string(flag) + ": "));
  }
}

TEST_F(RunOutputs, AFormThatIsLostAtTheEndExitsThreeAndKeepsTheOthers) {
  EXPECT_EQ(run("--junit /dev/full --csv r.csv --json r.json"), 3);
  EXPECT_THAT(cli_.err.str(), HasSubstr("the report is lost: /dev/full"));
  EXPECT_TRUE(std::filesystem::exists("r.csv"));
  EXPECT_TRUE(std::filesystem::exists("r.json"));
}

TEST_F(RunOutputs, GithubGetsAnnotationsAndASummaryOfItsOwnAccord) {
  in_github();
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run("--json r.json"), 1);
  EXPECT_THAT(cli_.out.str(), HasSubstr("\n::error title=gpubench fail::sim/first/n=8/f32/x1: "));
  EXPECT_THAT(content_of("summary.md"), StartsWith("### gpubench: FAIL\n"));
  EXPECT_EQ(run("--json r.json"), 1);
  EXPECT_EQ(content_of("summary.md").rfind("### gpubench: FAIL\n") > 0, true);
}

TEST_F(RunOutputs, ElsewhereOrWhereItIsNotWantedGithubGetsNothing) {
  cli_.script = "wrong_element@first.gemm";
  cli_.variables["GITHUB_STEP_SUMMARY"] = "summary.md";
  EXPECT_EQ(run("--json r.json"), 1);
  in_github();
  EXPECT_EQ(run("--json r.json --github off"), 1);
  EXPECT_THAT(cli_.out.str(), Not(HasSubstr("::error")));
  EXPECT_FALSE(std::filesystem::exists("summary.md"));
  EXPECT_EQ(run("--json r.json --github yes"), 2);
}

TEST_F(RunOutputs, WithADocumentOnStandardOutputAnnotationsGoToStandardError) {
  in_github();
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run("--junit - --json r.json"), 1);
  EXPECT_THAT(cli_.out.str(), Not(HasSubstr("\n::error")));
  EXPECT_THAT(cli_.err.str(), HasSubstr("\n::error"));
}

// The variable is untrusted; the exit code reports a lost summary only if it was requested.
TEST_F(RunOutputs, ASummaryThatCannotBeWrittenIsToldAndChangesNoVerdict) {
  in_github();
  std::filesystem::create_directory("a folder");
  for (const char* path : {"a folder", "/dev/full", "no/such/folder/x", "/dev/null"}) {
    cli_.variables["GITHUB_STEP_SUMMARY"] = path;
    EXPECT_EQ(run("--json r.json"), 0) << path;
    EXPECT_THAT(cli_.err.str(), HasSubstr("the summary in $GITHUB_STEP_SUMMARY is lost: " + std::string(path)));
    EXPECT_EQ(run("--json r.json --github on"), 3) << path;
  }
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run("--json r.json --github on"), 1);
}

TEST_F(RunOutputs, AStepsSummaryIsKeptBelowWhatGithubDrops) {
  in_github();
  std::ofstream("summary.md") << std::string((900U << 10U) - 300, 'x');
  EXPECT_EQ(run("--json r.json"), 0);
  EXPECT_LE(std::filesystem::file_size("summary.md"), 900U << 10U);
}

TEST_F(RunOutputs, AnInterruptedRunStillLeavesEveryForm) {
  cli_.stop = 2;
  EXPECT_EQ(run("--junit r.xml --markdown r.md --json r.json"), 130);
  EXPECT_THAT(content_of("r.xml"), HasSubstr("<property name=\"complete\" value=\"false\"/>"));
  EXPECT_THAT(content_of("r.md"), HasSubstr("INCOMPLETE"));
}

}  // namespace
}  // namespace gpubench

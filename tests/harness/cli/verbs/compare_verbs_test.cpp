// compare, gate and baseline on reports of the sim backend with a set clock, in one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/flags.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/report_schema.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompareVerbs : public ScratchFolder {
 protected:
  // Every op of every case takes `clock` ns.
  static void measure(const std::string& file, int clock, Words more = {}) {
    Captured cli;
    cli.script = "clock=" + std::to_string(clock);
    const Words words =
        Words{"--isolate", "off", "--tier", "smoke", "--preset", "gate", "--json", file, "--force"} + more;
    ASSERT_EQ(cli.run(words), 0) << cli.err.str();
    EXPECT_EQ(schema_errors(read_json_file(file)), "");
  }
  static void measure_three(const std::string& name, int clock) {
    for (int i = 0; i < 3; ++i) measure(name + std::to_string(i) + ".json", clock + i);
  }
  static Words gate_words(Words more = {}) {
    return "gate --baseline a0.json a1.json a2.json --candidate b0.json b1.json b2.json" + more;
  }

  Captured cli_;
};

TEST_F(CompareVerbs, TheGatePassesEqualRunsAndFailsSlowerOnes) {
  measure_three("a", 100000);
  measure_three("b", 100000);
  EXPECT_EQ(cli_.run(gate_words()), 0) << cli_.out.str();
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("GATE  PASS"), HasSubstr("exit 0"), HasSubstr("6 unchanged")));
  measure_three("b", 110000);
  EXPECT_THAT(exits(1, ran(gate_words())).out,
              AllOf(HasSubstr("REGRESSED  +10.0%"), HasSubstr("GATE  FAIL  6 regressed"), HasSubstr("exit 1")));
  EXPECT_EQ(Captured().run(gate_words("--tau 15%")), 0);
  Captured by_suite;
  EXPECT_EQ(by_suite.run(gate_words("--tau 1% --tau sim=15%")), 0) << by_suite.out.str();
}

TEST_F(CompareVerbs, AnInjectedSlowdownIsFoundAndIsNoBaseline) {
  measure_three("a", 100000);
  for (int i = 0; i < 3; ++i) measure("b" + std::to_string(i) + ".json", 100000 + i, "--inject-slowdown gemm=25%");
  const Json slowed = read_json_file("b0.json");
  EXPECT_EQ(slowed["context"]["gpubench"]["injected"], "gemm=25%");
  EXPECT_EQ(slowed["gpubench"]["cases"][0]["summary"]["flags"].back(), "injected slowdown");
  EXPECT_EQ(cli_.run(gate_words("--json -")), 1);
  const Json gate = parse_json(cli_.out.str(), "stdout");
  EXPECT_EQ(gate["exit_code"], 1);
  ASSERT_EQ(gate["cases"][0]["verdict"], "regressed");
  EXPECT_NEAR(gate["cases"][0]["slowdown"].get<double>(), 0.25, 1e-4);
  EXPECT_GT(gate["counts"]["unchanged"], 0);
  EXPECT_THAT(refusal_of("gate --baseline b0.json --candidate a0.json"),
              HasSubstr("b0.json was measured with an injected fault, gemm=25%, and cannot be a baseline"));
  EXPECT_EQ(Captured().run("baseline save main b0.json"), 2);
}

TEST_F(CompareVerbs, AnInjectedSlowdownOfAnOpThatNoCaseRunsIsAUsageError) {
  EXPECT_EQ(cli_.run("--isolate off --tier smoke --inject-slowdown gem=25%"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("no planned case runs an op 'gem'; kinds of ops: "));
  for (const char* word : {"gemm", "gemm=", "=25%", "gemm=-5%", "gemm=x", "gemm=5000%"}) {
    Captured other;
    EXPECT_EQ(other.run({"--inject-slowdown", word}), 2) << word;
  }
}

TEST_F(CompareVerbs, OneReportASideConcludesNothingUntilItIsCalibrated) {
  for (int i = 0; i < 5; ++i) measure("c" + std::to_string(i) + ".json", 100000 + 50 * i);
  EXPECT_EQ(cli_.run("gate --baseline c0.json --candidate c1.json"), 4);
  EXPECT_THAT(cli_.out.str(), HasSubstr("GATE  INCONCLUSIVE  not one case could be concluded upon"));
  EXPECT_THAT(exits(0, ran("calibrate --from c0.json c1.json c2.json c3.json c4.json")).out,
              StartsWith("6 cases, 5 runs: noise from run to run 0.08% (median)"));
  EXPECT_THAT(exits(0, ran("gate --baseline c0.json --candidate c1.json --noise .")).out,
              HasSubstr("calibrated over 5 runs"));
  measure("d.json", 110000);
  EXPECT_EQ(Captured().run("gate --baseline c0.json --candidate d.json --noise ."), 1);
}

TEST_F(CompareVerbs, TheGateWritesEveryFormatAndTheStepSummary) {
  measure_three("a", 100000);
  measure_three("b", 120000);
  std::ofstream("summary.md") << "earlier\n";
  cli_.variables["GITHUB_STEP_SUMMARY"] = "summary.md";
  EXPECT_EQ(cli_.run(gate_words("--json g.json --junit g.xml --markdown g.md --github")), 1);
  EXPECT_EQ(read_json_file("g.json")["outcome"], "FAIL");
  EXPECT_THAT(content_of("g.xml"), HasSubstr("<testsuite name=\"sim\" tests=\"6\" failures=\"6\""));
  EXPECT_THAT(content_of("g.md"), StartsWith("### gpubench gate: FAIL"));
  EXPECT_THAT(content_of("summary.md"), StartsWith("earlier\n### gpubench gate"));
  EXPECT_THAT(cli_.out.str(), HasSubstr("\n::error title=gpubench regressed::sim/"));
  const ChildResult pure = exits(1, ran(gate_words("--json - --github")));
  EXPECT_NO_THROW((void)parse_json(pure.out, "stdout"));
  EXPECT_THAT(pure.err, HasSubstr("::error "));
}

TEST_F(CompareVerbs, AnOutputThatCannotBeWrittenIsNoPass) {
  measure_three("a", 100000);
  measure_three("b", 100000);
  EXPECT_EQ(cli_.run(gate_words("--junit no/such/folder/g.xml")), 2);
  EXPECT_EQ(cli_.out.str(), "");
  exits(3, ran(gate_words("--github"), {.variables = {{"GITHUB_STEP_SUMMARY", "no/such/folder/summary.md"}}}));
}

TEST_F(CompareVerbs, AnotherSetupIsRefusedWithFour) {
  measure_three("a", 100000);
  for (int i = 0; i < 3; ++i) measure("b" + std::to_string(i) + ".json", 100000 + i, "--deterministic");
  EXPECT_EQ(cli_.run(gate_words("--github")), 4);
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("differs: deterministic off -> on"), HasSubstr("GATE  NOT COMPARABLE"),
                                    HasSubstr("::error title=gpubench gate::the set-ups differ: deterministic")));
  Captured allowed;
  EXPECT_EQ(allowed.run(gate_words("--allow-diff deterministic")), 0) << allowed.out.str();
  EXPECT_THAT(refusal_of(gate_words("--allow-diff driver")), HasSubstr("no report has 'driver'"));
}

TEST_F(CompareVerbs, FilesThatAreNoReportsExitTwoWithTheirPlace) {
  std::ofstream("text.json") << "{}";
  std::ofstream("bad.json") << "[";
  measure("a.json", 100000);
  measure("b.json", 100000);
  for (const Words& words :
       std::vector<Words>{"compare a.json text.json", "compare a.json bad.json", "compare a.json missing.json",
                          "gate --baseline a.json --candidate text.json",
                          "gate --baseline a.json --candidate b.json --noise text.json",
                          "gate --baseline a.json --candidate b.json --noise missing.json",
                          "calibrate --from a.json bad.json", "baseline save main text.json"})
    EXPECT_THAT(refusal_of(words), HasSubstr(".json:")) << words[0];
}

TEST_F(CompareVerbs, WrongCallsExitTwo) {
  const std::pair<Words, const char*> calls[] = {
      {"compare", "two reports at least"},
      {"compare a.json", "cannot be opened"},
      {"compare a.json --b b.json", "either reports"},
      {"compare --a a.json", "either reports"},
      {"compare a.json b.json --format xml", "table, markdown, json, csv"},
      {"compare a.json b.json --tau much", "not a share such as 3%"},
      {"gate --baseline a.json", "both --baseline"},
      {"gate --baseline a.json --candidate b.json --tau 0", "not a share such as 3%"},
      {"gate --baseline a.json --candidate b.json --tau 3", "'3' would be 300%: write 3% or 0.03"},
      {"gate --baseline a.json --candidate b.json --tau gemm=1", "'1' would be 100%: write 1%"},
      {"compare a.json b.json --tau 5", "'5' would be 500%: write 5% or 0.05"},
      {"--inject-slowdown gemm=25", "'25' would be 2500%: write 25% or 0.25"},
      {"--inject-slowdown gemm=2", "'2' would be 200%: write 2%"},
      {"gate --baselin a.json", "did you mean '--baseline'?"},
      {"calibrate --runs 1", "whole number from 2"},
      {"calibrate --from a.json", "at least two"},
      {"baseline", "save, list, show, merge"},
      {"baseline sav x", "did you mean 'save'?"},
      {"baseline save ../x a.json", "is not a name for a baseline"},
      {"baseline save .x a.json", "is not a name for a baseline"},
      {"baseline show nothing", "there is no baseline 'nothing'"},
      {"--preset gait", "did you mean 'gate'?"},
  };
  for (const auto& [words, expected] : calls) EXPECT_THAT(refusal_of(words), HasSubstr(expected));
}

// Copies of a report would have a noise of 0.00%.
TEST_F(CompareVerbs, ACopyOfAReportIsNoSecondRunForAnyVerb) {
  measure("a.json", 100000);
  measure("b.json", 101000);
  std::filesystem::copy_file("a.json", "copy.json");
  for (const Words& words : std::vector<Words>{
           "calibrate --from a.json b.json copy.json", "baseline save main a.json copy.json",
           "compare --a a.json copy.json --b b.json", "compare a.json copy.json",
           "gate --baseline a.json copy.json --candidate b.json", "gate --baseline b.json --candidate a.json copy.json",
           "gate --baseline a.json --candidate copy.json"})
    EXPECT_THAT(refusal_of(words), HasSubstr("a.json and copy.json are one report")) << words[0];
  ASSERT_EQ(Captured().run("baseline save main a.json"), 0);
  Captured more;
  ASSERT_EQ(more.run("baseline save more copy.json b.json"), 0);
  EXPECT_THAT(exits(2, ran("baseline merge all main more")).err, HasSubstr("are one report"));
}

TEST_F(CompareVerbs, RunsWithoutAnyNoiseAreNoCalibration) {
  for (int i = 0; i < 3; ++i) measure("c" + std::to_string(i) + ".json", 100000);
  EXPECT_EQ(cli_.run("calibrate --from c0.json c1.json c2.json -o noise.json"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("the noise from run to run is 0.00%"));
  EXPECT_FALSE(std::filesystem::exists("noise.json"));
}

TEST_F(CompareVerbs, CalibrateKeepsItsOwnFlagsFromTheRunsThatItStarts) {
  const Words words(
      "calibrate --runs 3 --suite gemm --keep=d -o n.json -on.json --output x.json --tier smoke --runs=4");
  EXPECT_THAT(parse_options(words).run_flags, ::testing::ElementsAre("--suite", "gemm", "--tier", "smoke"));
}

// Runs of calibrate inherit GPUBENCH_DETERMINISTIC, which would replace a flag that is not given.
TEST_F(CompareVerbs, CalibrateHandsOnThatASwitchIsOff) {
  EXPECT_THAT(parse_options(Words("calibrate --suite gemm --deterministic=false")).run_flags,
              ::testing::ElementsAre("--suite", "gemm", "--deterministic=false"));
}

TEST_F(CompareVerbs, CompareTellsRatiosAndNeverJudges) {
  measure_three("a", 100000);
  measure_three("b", 200000);
  EXPECT_EQ(cli_.run("compare --a a0.json a1.json a2.json --b b0.json b1.json b2.json"), 0);
  EXPECT_THAT(cli_.out.str(),
              AllOf(HasSubstr("A = "), HasSubstr("SLOWER   0.500x"), HasSubstr("suite"), HasSubstr("geomean B/A")));
  for (const auto& [format, start] : {std::pair{"markdown", "- A = simulated device"},
                                      std::pair{"json", "{\n \"schema\""}, std::pair{"csv", "a,b,suite,case,"}})
    EXPECT_THAT(exits(0, ran({"compare", "a0.json", "b0.json", "--format", format})).out, StartsWith(start));
  EXPECT_THAT(exits(0, ran("compare a0.json a1.json b0.json")).out, AllOf(HasSubstr("B/A"), HasSubstr("C/A")));
}

TEST_F(CompareVerbs, CompareWithNothingInCommonExitsFour) {
  measure("a.json", 100000, "--filter first");
  measure("b.json", 100000, "--filter last");
  EXPECT_EQ(cli_.run("compare a.json b.json"), 4);
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("only in A"), HasSubstr("only in B")));
}

TEST_F(CompareVerbs, ABaselineIsSavedListedShownMergedAndGatedAgainst) {
  measure_three("a", 100000);
  measure_three("b", 100010);
  EXPECT_EQ(cli_.run("baseline save main a0.json a1.json a2.json"), 0) << cli_.err.str();
  EXPECT_THAT(cli_.out.str(), StartsWith("main: 3 runs, 6 cases, set-up "));
  EXPECT_TRUE(std::filesystem::exists("gpubench-baselines/main.json"));
  EXPECT_THAT(refusal_of("baseline save main a0.json"), HasSubstr("--force replaces it"));
  Captured more;
  EXPECT_EQ(more.run("baseline save more b0.json b1.json"), 0);
  Captured merge;
  EXPECT_EQ(merge.run("baseline merge all main more"), 0) << merge.err.str();
  EXPECT_THAT(merge.out.str(), StartsWith("all: 5 runs"));
  Captured list;
  EXPECT_EQ(list.run("baseline list"), 0);
  EXPECT_THAT(list.out.str(), AllOf(HasSubstr("\nall "), HasSubstr("\nmain "), HasSubstr("\nmore ")));
  EXPECT_THAT(exits(0, ran("baseline show all")).out,
              AllOf(HasSubstr("device.kind = sim"), HasSubstr("sim/first/n=8/f32/x1")));
  Captured gate;
  EXPECT_EQ(gate.run("gate --baseline gpubench-baselines/all.json --candidate b2.json"), 0) << gate.out.str();
  EXPECT_THAT(gate.out.str(), HasSubstr("from the 5 baseline reports"));
  std::ofstream("gpubench-baselines/other.json") << "{}";
  EXPECT_THAT(exits(0, ran("baseline list")).out, AllOf(HasSubstr("other"), HasSubstr("unreadable")));
}

}  // namespace
}  // namespace gpubench

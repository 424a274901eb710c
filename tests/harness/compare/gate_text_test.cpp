#include "harness/compare/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/core/text/terminal_width.h"
#include "tests/harness/report/format_readers.h"
#include "tests/harness/report/shell.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

GateCase case_with(GateVerdict verdict, int number = 0, const std::string& reason = "") {
  GateCase one;
  one.id = "gemm/w" + std::to_string(number) + "/n=1/f32/x1";
  one.suite = "gemm";
  one.verdict = verdict;
  one.reason = reason;
  one.unit = "FLOP/s";
  one.baseline_rate = 2e12;
  one.candidate_rate = 1.6e12;
  one.candidate_ns = 1500;
  if (verdict == GateVerdict::regressed || verdict == GateVerdict::unchanged || verdict == GateVerdict::inconclusive) {
    Judgement judgement;
    judgement.verdict = verdict;
    judgement.effect.delta = std::log(1.25);
    judgement.low95 = std::log(1.2);
    judgement.high95 = std::log(1.3);
    one.judgement = judgement;
  }
  return one;
}

GateResult result_with(std::vector<GateCase> cases, GateOutcome outcome = GateOutcome::failed) {
  GateResult result;
  result.outcome = outcome;
  result.why = "1 regressed, 0 failing, 0 missing";
  result.baseline_runs = 3;
  result.candidate_runs = 3;
  result.noise = "from the reports of both sides";
  result.cases = std::move(cases);
  return result;
}

TEST(GateText, TheTableTellsWhatFailedByHowMuchAndHowItEnds) {
  const std::string text =
      gate_table(result_with({case_with(GateVerdict::regressed), case_with(GateVerdict::unchanged, 1)}), 1, {});
  EXPECT_EQ(text,
            "3 baseline and 3 candidate reports, a change of 3% matters\n"
            "noise from run to run: from the reports of both sides\n"
            "\n"
            "verdict      time  95% interval      rate                          case\n"
            "REGRESSED  +25.0%  +20.0% to +30.0%  2.00 TFLOP/s -> 1.60 TFLOP/s  gemm/w0/n=1/f32/x1\n"
            "\n"
            "1 regressed, 1 unchanged\n"
            "GATE  FAIL  1 regressed, 0 failing, 0 missing\n"
            "exit 1\n");
}

TEST(GateText, KeepsToTheWidthOfTheTerminalAndLosesNothing) {
  GateResult result =
      result_with({case_with(GateVerdict::regressed),
                   case_with(GateVerdict::inconclusive, 1,
                             "busy: others took the processors; on a quiet machine 3 runs a side would tell"),
                   case_with(GateVerdict::missing, 2, "in no candidate report")});
  result.why = "1 regressed, 0 failing, 1 missing, and 1 that could not be told";
  for (int width = 40; width <= 200; ++width) {
    ConsoleStyle style;
    style.width = width;
    const std::string text = gate_table(result, 1, style);
    EXPECT_THAT(lines_too_wide(text, width), IsEmpty()) << width;
    for (const char* part : {"REGRESSED", "+25.0%", "+20.0% to +30.0%", "2.00 TFLOP/s -> 1.60 TFLOP/s",
                             "gemm/w0/n=1/f32/x1", "gemm/w2/n=1/f32/x1", "exit 1"})
      EXPECT_THAT(text, HasSubstr(part)) << width;
  }
}

TEST(GateText, ColourIsAddedToWordsAndTakesNoneAway) {
  ConsoleStyle style;
  style.color = true;
  const GateResult result = result_with({case_with(GateVerdict::regressed)});
  std::string text = gate_table(result, 1, style);
  for (const char* code : {"\x1b[1;31m", "\x1b[0m"}) {
    EXPECT_THAT(text, HasSubstr(code));
    for (std::size_t at = text.find(code); at != std::string::npos; at = text.find(code))
      text.erase(at, std::string(code).size());
  }
  EXPECT_EQ(text, gate_table(result, 1, {}));
}

TEST(GateText, ManyInconclusiveCasesAreCountedAndFailingOnesAllShown) {
  std::vector<GateCase> cases;
  for (int i = 0; i < 30; ++i) cases.push_back(case_with(GateVerdict::regressed, i));
  for (int i = 30; i < 60; ++i) cases.push_back(case_with(GateVerdict::inconclusive, i, "noise"));
  const std::string text = gate_table(result_with(cases), 1, {});
  EXPECT_EQ(count(text, "REGRESSED"), 30);
  EXPECT_EQ(count(text, "INCONCLUSIVE"), 20);
  EXPECT_THAT(text, HasSubstr("and 10 more (-v)"));
  ConsoleStyle all;
  all.verbosity = 1;
  EXPECT_EQ(count(gate_table(result_with(cases), 1, all), "INCONCLUSIVE"), 30);
}

TEST(GateText, JsonHoldsTheNumbersBehindEachVerdict) {
  const Json json =
      gate_json(result_with({case_with(GateVerdict::regressed), case_with(GateVerdict::missing, 1, "gone")}), 1);
  EXPECT_EQ(json["schema"], "gpubench-gate");
  EXPECT_EQ(json["outcome"], "FAIL");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["counts"]["regressed"], 1);
  EXPECT_EQ(json["counts"]["unchanged"], 0);
  EXPECT_NEAR(json["cases"][0]["slowdown"].get<double>(), 0.25, 1e-12);
  EXPECT_NEAR(json["cases"][0]["high95"].get<double>(), 0.30, 1e-12);
  EXPECT_EQ(json["cases"][1]["verdict"], "missing");
  EXPECT_FALSE(json["cases"][1].contains("slowdown"));
}

TEST(GateText, AnnotationsAreNineAtMostAndCountTheRest) {
  std::vector<GateCase> cases;
  for (int i = 0; i < 12; ++i) cases.push_back(case_with(GateVerdict::regressed, i));
  const std::string text = gate_annotations(result_with(cases), false);
  EXPECT_EQ(count(text, "::error "), 10);
  EXPECT_THAT(text, StartsWith("::error title=gpubench regressed::gemm/w0/n=1/f32/x1: +25.0%25 in time, 95%25 interval "
                               "+20.0%25 to +30.0%25; 2.00 TFLOP/s -> 1.60 TFLOP/s\n"));
  EXPECT_THAT(text, HasSubstr("::error title=gpubench gate::and 3 more\n"));
  cases.resize(9);
  EXPECT_EQ(count(gate_annotations(result_with(cases), false), "::error "), 9);
}

TEST(GateText, WhereNothingFailedAnAnnotationSaysWhyItDidNotPass) {
  EXPECT_EQ(gate_annotations(result_with({}, GateOutcome::passed), false), "");
  EXPECT_THAT(gate_annotations(result_with({}, GateOutcome::inconclusive), false),
              StartsWith("::warning title=gpubench gate::"));
  GateResult refused = result_with({}, GateOutcome::not_comparable);
  refused.refused = {{"device.name", "a", "b"}};
  EXPECT_THAT(gate_annotations(refused, false), StartsWith("::error title=gpubench gate::"));
  const GateResult missing = result_with({case_with(GateVerdict::missing, 0, "in the baseline only")});
  EXPECT_EQ(count(gate_annotations(missing, false), "::error "), 1);
  EXPECT_EQ(count(gate_annotations(missing, true), "::error "), 0);
}

TEST(GateText, MarkdownKeepsItsLimitAndSaysWhatItLeavesOut) {
  std::vector<GateCase> cases;
  for (int i = 0; i < 1000; ++i) cases.push_back(case_with(GateVerdict::regressed, i));
  const std::string text = gate_markdown(result_with(cases), 20000);
  EXPECT_LE(text.size(), 20000U);
  const int rows = count(text, "| REGRESSED |");
  EXPECT_GT(rows, 50);
  EXPECT_THAT(text, HasSubstr(std::to_string(1000 - rows) + " more cases are left out here."));
  EXPECT_THAT(text, HasSubstr("| REGRESSED | +25.0% | +20.0% to +30.0% | 2.00 TFLOP/s -&gt; 1.60 TFLOP/s | gemm/w0"));
}

TEST(GateText, JunitCountsFailuresErrorsAndSkippedBySuite) {
  GateCase crashed = case_with(GateVerdict::parity_failed, 1, "error: crash");
  crashed.candidate_verdict = Verdict::error;
  GateCase wrong = case_with(GateVerdict::parity_failed, 2, "fail: <wrong> & \"bad\"");
  wrong.candidate_verdict = Verdict::fail;
  GateCase elsewhere = case_with(GateVerdict::added, 3, "in the candidate only");
  elsewhere.suite = "conv";
  const std::string text = gate_junit(
      result_with({case_with(GateVerdict::regressed), crashed, wrong, elsewhere, case_with(GateVerdict::unchanged, 4),
                   case_with(GateVerdict::missing, 5, "in the baseline only")}),
      "0123456789abcdef", false);
  EXPECT_THAT(text,
              StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpubench gate\" tests=\"6\" "
                         "failures=\"3\" errors=\"1\">"));
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"gemm\" tests=\"5\" failures=\"3\" errors=\"1\" skipped=\"0\">"));
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"conv\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\">"));
  EXPECT_THAT(text, HasSubstr("<property name=\"fingerprint\" value=\"0123456789abcdef\"/>"));
  EXPECT_THAT(text,
              HasSubstr("<failure type=\"parity_failed\" message=\"fail: &lt;wrong&gt; &amp; &quot;bad&quot;\"/>"));
  EXPECT_THAT(text, HasSubstr("<error type=\"parity_failed\" message=\"error: crash\"/>"));
  EXPECT_THAT(text, HasSubstr("<testcase classname=\"gemm\" name=\"gemm/w4/n=1/f32/x1\" time=\"0.000001500\"/>"));
}

// A server that only counts tests must not see a pass.
TEST(GateText, JunitOfARefusedGateHasAnError) {
  const std::string text = gate_junit(result_with({}, GateOutcome::not_comparable), "0", false);
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("errors=\"1\""), HasSubstr("<error type=\"NOT COMPARABLE\"")));
}

TEST(GateText, JunitHoldsByTheSchemaOfJenkins) {
  if (!is_installed("xmllint")) GTEST_SKIP() << "xmllint (libxml2-utils) is not installed";
  GateCase crashed = case_with(GateVerdict::parity_failed, 1, "error: crash");
  crashed.candidate_verdict = Verdict::error;
  EXPECT_EQ(junit_problem(gate_junit(
                result_with({case_with(GateVerdict::regressed), crashed,
                             case_with(GateVerdict::inconclusive, 2, "noise"), case_with(GateVerdict::unchanged, 3)}),
                "0", false)),
            "");
  EXPECT_EQ(junit_problem(gate_junit(result_with({}, GateOutcome::not_comparable), "0", false)), "");
}

TEST(Escape, EverySinkKeepsTextText) {
  const std::string hostile = "a<b>&\"'|*_`[x](y)\\@me#1!\r\n::error::x,%0A\x1b[2J\xff=";
  EXPECT_THAT(xml_text(hostile),
              AllOf(Not(HasSubstr("<")), Not(HasSubstr("\"")), Not(HasSubstr("\x1b")), Not(HasSubstr("\n"))));
  EXPECT_EQ(xml_text("1 < 2 & 'x'"), "1 &lt; 2 &amp; &apos;x&apos;");
  for (const char* never : {"<", "|", "*", "`", "[", "]", "\\", "@", "!", "\n", "\r", "\x1b", "://"})
    EXPECT_THAT(markdown_cell(hostile), Not(HasSubstr(never))) << never;
  EXPECT_THAT(github_message(hostile), AllOf(Not(HasSubstr("\n")), Not(HasSubstr("\r")), HasSubstr("%250A")));
  EXPECT_THAT(github_property("a:b,c%"), "a%3Ab%2Cc%25");
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
  for (const char* formula : {"=1", "+1", "-1", "@x"}) EXPECT_EQ(csv_cell(formula), std::string("'") + formula);
  EXPECT_THAT(csv_cell("a\nb"), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace gpubench

#include "harness/report/export.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/file/atomic_file.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/shell.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

Report report_with(int failing, int errors, int passing) {
  Report report = sample_report();
  report.cases.clear();
  const auto add = [&report](Verdict verdict, int number, double error) {
    CaseRecord record = sample_record(verdict);
    record.c.dims = {{"m", number + 1}};
    record.id = record.c.id();
    record.parity.error_over_bound = error;
    report.cases.push_back(record);
  };
  for (int i = 0; i < passing; ++i) add(Verdict::pass, i, 0.25);
  for (int i = 0; i < failing; ++i) add(Verdict::fail, 100 + i, 2.0 + i);
  for (int i = 0; i < errors; ++i) add(Verdict::error, 200 + i, 0.0);
  return report;
}

std::string annotations(const Report& report) { return annotations_text(annotations_of(report), "gpubench"); }

TEST(GithubAnnotations, AreOneLineForEachCaseThatWentWrongWorstFirst) {
  const std::string text = annotations(report_with(2, 1, 3));
  EXPECT_EQ(count(text, "\n"), 3);
  EXPECT_THAT(text, StartsWith("::error title=gpubench error::gemm/square/m=201/bf16/warm/x1: "));
  // Errors of 2 and 3 times the bound: the larger comes first.
  EXPECT_LT(text.find("m=102"), text.find("m=101"));
  EXPECT_THAT(text, HasSubstr("rerun: gpubench run --filter"));
}

TEST(GithubAnnotations, AreNineAtMostAndOneThatCountsTheOthers) {
  EXPECT_EQ(count(annotations(report_with(9, 0, 0)), "::error "), 9);
  const std::string text = annotations(report_with(30, 0, 0));
  EXPECT_EQ(count(text, "::error "), 10);
  EXPECT_THAT(text, EndsWith("::error title=gpubench::and 21 more\n"));
}

TEST(GithubAnnotations, WarningsHaveTheirOwnNine) {
  std::vector<Annotation> many(12, {AnnotationKind::warning, "w", "m"});
  many.insert(many.begin(), {AnnotationKind::error, "e", "m"});
  const std::string text = annotations_text(many, "rest");
  EXPECT_EQ(count(text, "::error "), 1);
  EXPECT_EQ(count(text, "::warning "), 10);
  EXPECT_THAT(text, EndsWith("::warning title=rest::and 3 more\n"));
}

TEST(GithubAnnotations, AreNoneForARunThatPassed) { EXPECT_THAT(annotations(report_with(0, 0, 3)), IsEmpty()); }

TEST(GithubAnnotations, WarnOfWhatLooksLikeAPassAndIsNone) {
  Report interrupted = report_with(0, 0, 2);
  interrupted.run.complete = false;
  EXPECT_THAT(annotations(interrupted), StartsWith("::warning title=gpubench::the run was interrupted"));
  Report unverified = report_with(0, 0, 2);
  unverified.cases[0].verdict = Verdict::unverified;
  EXPECT_THAT(annotations(unverified), StartsWith("::warning title=gpubench::1 cases were not verified"));
  Report nothing = report_with(0, 0, 1);
  nothing.cases[0].verdict = Verdict::unsupported;
  EXPECT_THAT(annotations(nothing), StartsWith("::warning title=gpubench::nothing ran"));
}

TEST(GithubAnnotations, LongMessagesAreCutBetweenCharacters) {
  // "é" has two bytes: an odd limit must not split it.
  std::string text = "x";
  for (int i = 0; i < 4000; ++i) text += "é";
  const std::string line = annotations_text(std::vector<Annotation>{{AnnotationKind::error, "t", text}}, "r");
  EXPECT_LT(line.size(), 4200U);
  EXPECT_THAT(line, EndsWith("é...\n"));
}

class GithubSummary : public ::testing::Test {
 protected:
  std::string there() { return ScratchFolder::content_of(file_.path()); }
  static std::string fill(std::size_t room) { return std::string(room, 'x'); }
  TemporaryFile file_{"summary.md", "what another command wrote\n"};
};

TEST_F(GithubSummary, IsAddedToWhatIsThere) {
  append_summary(file_.path(), [](std::size_t) { return std::string("mine\n"); });
  EXPECT_EQ(there(), "what another command wrote\nmine\n");
}

TEST_F(GithubSummary, CountsWhatIsThereWithin900KiB) {
  append_summary(file_.path(), fill);
  EXPECT_EQ(there().size(), 921600U);
  append_summary(file_.path(), [](std::size_t) { return std::string("more"); });
  EXPECT_EQ(there().size(), 921600U);
}

TEST_F(GithubSummary, IsMadeWhereThereIsNone) {
  std::filesystem::remove(file_.path());
  append_summary(file_.path(), [](std::size_t room) { return fmt::format("{}", room); });
  EXPECT_EQ(there(), "921600");
}

TEST_F(GithubSummary, APlaceThatIsNoFileIsSaidAndNotWaitedFor) {
  EXPECT_THROW(append_summary(std::filesystem::temp_directory_path(), fill), WriteError);
  EXPECT_THROW(append_summary("/dev/null", fill), WriteError);
  EXPECT_THROW(append_summary("/no/such/folder/summary.md", fill), WriteError);
}

TEST(Markdown, TellsWhatCameOutOnWhatAndEachCaseWorstFirst) {
  const std::string text = markdown_text(report_with(1, 1, 1), max_summary_bytes);
  EXPECT_THAT(text, StartsWith("### gpubench: ERROR\n\n1 pass, 1 fail, 1 error of 3 cases\n\n- A Processor, 2 threads, "
                               "oneDNN 2.6.3\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\n| verdict | rate | time | ±95% | err/bound | case |\n| --- | ---: | ---: | ---: | ---: | --- |\n"
                "| ERROR | "));
  EXPECT_LT(text.find("| ERROR |"), text.find("| FAIL |"));
  EXPECT_LT(text.find("| FAIL |"), text.find("| PASS |"));
  EXPECT_THAT(text, HasSubstr("| PASS | 21.8 GFLOP/s | 3.00 us | 3.3% | 0.25 | gemm/square/m=1/bf16/warm/x1 |\n"));
  EXPECT_THAT(text, HasSubstr("<br><code>gpubench run --filter '^gemm/square/m=64,n=32,k=16/bf16/warm/x1$' --tier"));
}

TEST(Markdown, SaysWhichInstructionSetsWerePassedOverAndWhy) {
  Report report = report_with(0, 0, 1);
  EXPECT_THAT(markdown_text(report, max_summary_bytes), Not(HasSubstr("cpu isa")));
  auto& properties = report.run.devices[0].properties;
  properties.emplace_back("cpu_isa", "limited to avx512_core_bf16");
  properties.emplace_back("cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty");
  EXPECT_THAT(markdown_text(report, max_summary_bytes), HasSubstr("CPUID leaf 0x1D is empty\n- gpubench "));
}

TEST(Markdown, KeepsItsLimitBetweenRowsAndCountsWhatItLeavesOut) {
  const Report report = report_with(0, 0, 500);
  for (const std::size_t limit : {2000U, 5000U, 5001U, 20000U}) {
    const std::string text = markdown_text(report, limit);
    EXPECT_LE(text.size(), limit);
    const int rows = count(text, "| PASS |");
    EXPECT_GT(rows, 0);
    EXPECT_THAT(text, EndsWith(fmt::format(" |\n\n{} more cases are left out here.\n", 500 - rows)));
  }
  EXPECT_EQ(count(markdown_text(report, max_summary_bytes), "| PASS |"), 500);
}

TEST(Markdown, AHeadThatIsTooLongIsCutBetweenLines) {
  for (std::size_t limit = 0; limit < 400; limit += 7) {
    const std::string text = markdown_text(report_with(0, 0, 1), limit);
    EXPECT_LE(text.size(), limit);
    EXPECT_TRUE(text.empty() || text.back() == '\n') << text;
  }
}

// Despite a reason of a megabyte.
TEST(Markdown, OneLongReasonDoesNotHideTheOtherCases) {
  Report report = report_with(3, 0, 0);
  report.cases[2].reason = std::string(1U << 20U, 'y');
  const std::string text = markdown_text(report, max_summary_bytes);
  EXPECT_EQ(count(text, "| FAIL |"), 3);
  EXPECT_LT(text.size(), 10000U);
}

}  // namespace
}  // namespace gpubench

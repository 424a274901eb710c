// Resuming interrupted runs in one process.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "harness/core/file/descriptor.h"
#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/report_schema.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Resume : public ScratchFolder {
 protected:
  static Words words(const Words& more) {
    return "--isolate off --tier smoke --tuning-cache off --progress none" + more;
  }
  // The journal of a whole run whose report is lost; a prefix is that of a killed run.
  std::string whole_journal() {
    Captured cli;
    cli.variables["TMPDIR"] = ".";
    EXPECT_EQ(cli.run(words("--out o --csv /dev/full")), 3) << cli.err.str();
    EXPECT_THAT(cli.out.str(), HasSubstr("resume   gpubench run --resume o\n"));
    return content_of("o/journal.jsonl");
  }
  void killed_after(const std::string& journal, std::size_t bytes) {
    std::filesystem::remove_all("o");
    std::filesystem::create_directory("o");
    write("o/journal.jsonl", journal.substr(0, bytes));
  }
  static std::map<std::string, Verdict> told(const std::string& path) {
    std::map<std::string, Verdict> all;
    for (const CaseRecord& record : read_report(path).cases) all[record.id] = record.verdict;
    return all;
  }
  static int resume(Captured& cli, const Words& more = {}) { return cli.run("run --resume o" + words(more)); }
};

TEST_F(Resume, ARunThatEndsLeavesNoJournal) {
  Captured cli;
  EXPECT_EQ(cli.run(words("--out o")), 0);
  EXPECT_FALSE(std::filesystem::exists("o/journal.jsonl"));
  EXPECT_EQ(cli.run(words("--json r.json")), 0);
  EXPECT_FALSE(std::filesystem::exists("r.json.journal.jsonl"));
  EXPECT_THAT(cli.out.str(), Not(HasSubstr("resume ")));
}

// A kill between any two entries and in the middle of each.
TEST_F(Resume, AfterAKillAtAnyEntryTheReportIsThatOfAnUninterruptedRun) {
  const std::string journal = whole_journal();
  const auto expected = told("o/report.json");
  ASSERT_EQ(expected.size(), 6U);
  std::size_t kills = 0, in_flight = 0;
  for (std::size_t line = journal.find('\n') + 1; line <= journal.size();) {
    const std::size_t next = journal.find('\n', line);
    for (const std::size_t bytes : {line, line + (std::min(next, journal.size()) - line) / 2}) {
      SCOPED_TRACE(bytes);
      killed_after(journal, bytes);
      const Journal left = read_journal("o/journal.jsonl");
      in_flight += left.in_flight.size();
      Captured cli;
      ASSERT_EQ(resume(cli), 0) << cli.err.str();
      EXPECT_EQ(told("o/report.json"), expected);
      EXPECT_THAT(cli.err.str(), HasSubstr("resuming an interrupted run: " + std::to_string(left.finished.size()) +
                                           " cases finished, " + std::to_string(left.in_flight.size())));
      EXPECT_FALSE(std::filesystem::exists("o/journal.jsonl"));
      ++kills;
      if (line == journal.size()) break;
    }
    if (next == std::string::npos) break;
    line = next + 1;
  }
  tell_count("kills at entries of the journal", static_cast<int>(kills));
  EXPECT_GE(kills, 20U);
  EXPECT_GT(in_flight, 0U);
}

// The last of all rounds is measured again, since the recheck needs its buffers.
TEST_F(Resume, ARunThatIsKilledInItsRecheckTwiceGoesOn) {
  std::string journal = whole_journal();
  const auto expected = told("o/report.json");
  for (std::size_t from = 0; const int times : {1, 2}) {
    SCOPED_TRACE(times);
    killed_after(journal, journal.rfind('\n', journal.find("\"case\":", from)) + 1);
    Captured cli;
    ASSERT_EQ(resume(cli, "--csv /dev/full"), 3) << cli.err.str();
    EXPECT_EQ(told("o/report.json"), expected);
    journal = content_of("o/journal.jsonl");
    from = journal.rfind("\"resumed\":");
  }
}

TEST_F(Resume, ADryRunNeedsNeitherTheLockNorPermissionToWrite) {
  killed_after(whole_journal(), std::string::npos);
  const Descriptor other_run(::open("o/journal.jsonl", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other_run.get(), LOCK_EX), 0);
  Captured dry, wet;
  EXPECT_EQ(resume(dry, "--dry-run"), 0) << dry.err.str();
  EXPECT_EQ(resume(wet), 2);
  EXPECT_THAT(wet.err.str(), HasSubstr("another run is writing to it"));
}

TEST_F(Resume, FinishedCasesAreNotRunAgainAndTheReportSaysThatItWasResumed) {
  const std::string journal = whole_journal();
  killed_after(journal, journal.size());
  Captured cli;
  cli.script = "kill@first.gemm;kill@last.add";  // fails if a case runs again
  EXPECT_EQ(resume(cli), 0) << cli.err.str();
  const Json report = read_json_file("o/report.json");
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_EQ(report["context"]["gpubench"]["resumed"], 1);
  EXPECT_EQ(report["context"]["gpubench"]["complete"], true);
}

TEST_F(Resume, ARunWithoutTunedChoicesGoesOnWithoutThem) {
  const std::string journal = whole_journal();
  EXPECT_EQ(read_journal("o/journal.jsonl").start.words,
            (std::vector<std::string>{"--tier", "smoke", "--isolate", "off", "--tuning-cache", "off"}));
  for (const Words& more : {Words{}, {"--tuning-cache", "off"}}) {
    killed_after(journal, journal.size());
    Captured cli;
    EXPECT_EQ(cli.run("run --resume o" + more), 0) << cli.err.str();
    EXPECT_THAT(read_report("o/report.json").cases.front().rerun, HasSubstr("--tuning-cache off"));
  }
}

TEST_F(Resume, ARunThatWasInterruptedBeforeItsFirstLineStartsAgain) {
  killed_after(whole_journal(), 30);
  EXPECT_THAT(refusal_of("run --resume o"), HasSubstr("has no lines, so nothing is lost; run without --resume"));
  EXPECT_EQ(Captured().run(words("--out o")), 0);
  EXPECT_EQ(told("o/report.json").size(), 6U);
}

TEST_F(Resume, AnotherRunIsRefusedWithTheFirstDifference) {
  const std::string journal = whole_journal();
  for (const auto& [flags, said] :
       std::vector<std::pair<Words, std::string>>{{"--tier smoke --seed 43", "seed 42 -> 43"},
                                                  {"--tier smoke --check full", "check sample -> full"},
                                                  {"--tier quick", "tier smoke -> quick"},
                                                  {"--tier smoke --filter last", "cases 6 ("},
                                                  {"--tier smoke --deterministic", "deterministic off -> on"}}) {
    killed_after(journal, journal.size());
    Captured cli;
    cli.script = "kill@first.gemm";
    EXPECT_EQ(resume(cli, flags), 4) << cli.err.str();
    EXPECT_THAT(cli.err.str(), AllOf(HasSubstr("--resume: this is another run"), HasSubstr(said)));
    EXPECT_EQ(content_of("o/journal.jsonl"), journal);
  }
  killed_after(journal, journal.size());
  Captured moved;
  moved.variables["OMP_NUM_THREADS"] = "1";
  EXPECT_EQ(resume(moved), 4);
  EXPECT_THAT(moved.err.str(), HasSubstr("env.OMP_NUM_THREADS (none) -> 1"));
}

TEST_F(Resume, WhatIsNoJournalIsRefused) {
  const std::string journal = whole_journal();
  const auto refusal = [](const Words& more) {
    return refusal_of("run --isolate off" + more, {.script = "kill@first.gemm"});
  };
  EXPECT_THAT(refusal("--resume missing"), HasSubstr("is neither a folder nor a FILE.journal.jsonl"));
  std::filesystem::create_directory("empty");
  EXPECT_THAT(refusal("--resume empty"), HasSubstr("expected the journal of a run that was interrupted"));
  EXPECT_THAT(refusal("--resume o --out elsewhere"), HasSubstr("leave the flag out"));
  write("o/journal.jsonl", journal.substr(1));
  EXPECT_THAT(refusal("--resume o"), HasSubstr("is damaged"));
  // A new run must not destroy old measurements either.
  write("o/journal.jsonl", journal);
  std::filesystem::remove("o/report.json");
  std::filesystem::remove("o/report.html");
  EXPECT_THAT(refusal("--tier smoke --out o"), HasSubstr("--resume continues it, --force starts a new one"));
}

TEST_F(Resume, AJournalMayNotSayWhatIsWrittenWhere) {
  std::filesystem::create_directory("o");
  JournalStart start{"0123456789abcdef", {"--tier", "smoke", "--csv", "planted.csv"}, {}};
  { const JournalWriter journal("o/journal.jsonl", start, {}); }
  Captured cli;
  cli.script = "kill@first.gemm";
  EXPECT_EQ(resume(cli), 2);
  EXPECT_THAT(cli.err.str(), HasSubstr("it has flags that neither select nor measure"));
  EXPECT_FALSE(std::filesystem::exists("planted.csv"));
}

TEST_F(Resume, AnInterruptSaysHowToGoOnBesideAFileToo) {
  EXPECT_THAT(exits(130, ran(words("--json r.json"), {.stop = 2})).out,
              HasSubstr("resume   gpubench run --resume r.json.journal.jsonl\n"));
  EXPECT_EQ(read_report("r.json").run.complete, false);
  Captured on;
  EXPECT_EQ(on.run("run --resume r.json.journal.jsonl --isolate off --tier smoke"), 0) << on.err.str();
  EXPECT_EQ(read_report("r.json").run.complete, true);
  EXPECT_FALSE(std::filesystem::exists("r.json.journal.jsonl"));
}

}  // namespace
}  // namespace gpubench

// Runs that are ended at any time, with their workers: what was finished is not lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>

#include "harness/report/journal.h"
#include "harness/report/report_reader.h"
#include "tests/cli/child.h"
#include "tests/cli/scratch_folder.h"

namespace gpubench {
namespace {

class Killed : public ScratchFolder {
 protected:
  static ChildResult run(std::vector<std::string> words, const std::function<void(int)>& while_running = {}) {
    words.insert(words.begin(), GPUBENCH_SIM_PROGRAM);
    words.insert(words.end(), {"--tuning-cache", "off", "--progress", "none"});
    return run_child(words, {}, "cases at tier", while_running);
  }
  static bool has_ended(int pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  }
  static std::size_t lines_of(const std::string& journal) {
    const std::string text = content_of(journal);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static std::map<std::string, Verdict> verdicts(const std::string& path) {
    std::map<std::string, Verdict> all;
    for (const CaseRecord& record : read_report(path).cases) all[record.id] = record.verdict;
    return all;
  }
};

// The signal comes once the journal has so many lines; a run that is done before that has nothing to be killed.
TEST_F(Killed, AtAnyTimeARunGoesOnWithoutLosingAFinishedCase) {
  ASSERT_EQ(run({"--tier", "smoke", "--out", "whole"}).exit_code, 0);
  const std::map<std::string, Verdict> expected = verdicts("whole/report.json");
  int kills = 0;
  for (const int signal : {SIGKILL, SIGINT, SIGHUP}) {
    for (std::size_t after = 1; after <= 25; after += 4) {
      SCOPED_TRACE(testing::Message() << "signal " << signal << " after " << after << " lines");
      std::filesystem::remove_all("o");
      const ChildResult killed = run({"--tier", "smoke", "--out", "o"}, [&](int pid) {
        while (lines_of("o/journal.jsonl") < after && !has_ended(pid)) ::sched_yield();
        ::kill(pid, signal);
      });
      if (!std::filesystem::exists("o/journal.jsonl")) continue;  // it had ended by itself
      ++kills;
      EXPECT_EQ(killed.exit_code, 128 + signal) << killed.err;
      const std::size_t finished = read_journal("o/journal.jsonl").finished.size();
      if (signal != SIGKILL) {
        const Report partial = read_report("o/report.json");
        EXPECT_FALSE(partial.run.complete);
        EXPECT_EQ(totals_of(partial.cases).count(Verdict::pass), static_cast<int>(finished));
      }
      const ChildResult resumed = run({"run", "--resume", "o"});
      EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
      EXPECT_EQ(verdicts("o/report.json"), expected);
      EXPECT_NE(resumed.err.find("going on with an interrupted run: " + std::to_string(finished) + " cases"),
                std::string::npos)
          << resumed.err;
    }
  }
  RecordProperty("kills", kills);
  EXPECT_GE(kills, 10);
}

}  // namespace
}  // namespace gpubench

// Runs ended at any time, with their workers: finished cases are kept, and no process is left running.
//
// GPUBENCH_TRIAL_KILLS, GPUBENCH_TRIAL_SIGNALS, GPUBENCH_TRIAL_THRICE: number of kills, of interruptions of each kind,
// and of runs interrupted three times (`ctest -C trials -L trials`: 500, 100 each, 200).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;

using Seconds = std::chrono::duration<double>;

class Killed : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words, const std::string& wait_for = "",
                         const std::function<void(int)>& while_running = {}) {
    return run_child(Words{paths::sim_program} + words + "--tuning-cache off --progress none", {}, wait_for,
                     while_running);
  }
  static bool has_ended(int pid) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
  }
  static std::size_t lines_of(const std::string& journal) {
    const std::string text = content_of(journal);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Ids, verdicts and checks, without anything that depends on time, such as the rounds in which a state was compared.
  static std::map<std::string, std::string> findings(const std::string& path) {
    std::map<std::string, std::string> all;
    const Json report = read_json_file(path);
    for (const Json& one : report["gpubench"]["cases"]) {
      Json kept;
      for (const char* member : {"status", "reason", "def_hash", "implementation", "parity"})
        kept[member] = one[member];
      const std::string coverage = kept["parity"]["coverage"].get<std::string>();
      kept["parity"]["coverage"] = coverage.substr(0, coverage.find(" rounds: "));
      all[one["id"].get<std::string>()] = dump(kept);
    }
    return all;
  }
  // The first difference from an undisturbed run; "" if there is none.
  [[nodiscard]] std::string difference(const std::string& path) const {
    const std::map<std::string, std::string> found = findings(path);
    if (found.size() != expected_.size()) return std::to_string(found.size()) + " cases";
    for (const auto& [id, what] : expected_) {
      if (!found.contains(id)) return id + " is missing";
      if (found.at(id) != what) return id + ": " + found.at(id) + "\nexpected " + what;
    }
    return "";
  }
  // Finished cases in the folder's journal; nothing if its start was not written.
  static std::optional<std::size_t> finished_in(const std::string& folder) {
    if (!std::filesystem::exists(folder + "/journal.jsonl")) return std::nullopt;
    try {
      return read_journal(folder + "/journal.jsonl").finished.size();
    } catch (const ReadError&) {
      EXPECT_EQ(lines_of(folder + "/journal.jsonl"), 0U);
      return std::nullopt;
    }
  }
  void resume(std::size_t finished) const {
    const ChildResult resumed = exits(0, run("run --resume o"));
    EXPECT_EQ(difference("o/report.json"), "");
    EXPECT_NE(resumed.err.find("resuming an interrupted run: " + std::to_string(finished) + " cases"),
              std::string::npos)
        << resumed.err;
    EXPECT_FALSE(std::filesystem::exists("o/journal.jsonl"));
  }
  void run_whole() {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(run("--tier smoke --out whole").exit_code, 0);
    whole_ = std::chrono::steady_clock::now() - start;
    expected_ = findings("whole/report.json");
    ASSERT_EQ(expected_.size(), 6U);
  }
  // A random time up to slightly beyond the end of a run.
  void wait_for_some_time(int pid) {
    const double share = std::uniform_real_distribution<double>(0.0, 1.1)(random_);
    const auto until = std::chrono::steady_clock::now() + share * whole_;
    while (std::chrono::steady_clock::now() < until && !has_ended(pid)) ::sched_yield();
  }

  std::map<std::string, std::string> expected_;
  Seconds whole_{};
  std::mt19937_64 random_{20240229};
};

// The signal comes when the journal has that many lines; a run may end before.
TEST_F(Killed, AtAnyLineOfTheJournalARunGoesOnWithoutLosingAFinishedCase) {
  run_whole();
  int kills = 0;
  for (const int signal : {SIGKILL, SIGINT, SIGHUP}) {
    for (std::size_t after = 1; after <= 25; after += 4) {
      SCOPED_TRACE(testing::Message() << "signal " << signal << " after " << after << " lines");
      std::filesystem::remove_all("o");
      const ChildResult killed = run("--tier smoke --out o", "cases at tier", [&](int pid) {
        while (lines_of("o/journal.jsonl") < after && !has_ended(pid)) ::sched_yield();
        ::kill(pid, signal);
      });
      const std::optional<std::size_t> finished = finished_in("o");
      if (!finished) continue;
      ++kills;
      EXPECT_EQ(killed.exit_code, 128 + signal) << killed.err;
      if (signal != SIGKILL) {
        const Report partial = read_report("o/report.json");
        EXPECT_FALSE(partial.run.complete);
        EXPECT_EQ(totals_of(partial.cases).count(Verdict::pass), static_cast<int>(*finished));
      }
      resume(*finished);
    }
  }
  tell_count("kills at lines of the journal", kills);
  EXPECT_GE(kills, 10);
}

TEST_F(Killed, ASoakKeepsWhatItHasNotedDown) {
  exits(128 + SIGKILL,
        run_child({paths::sim_program, "soak", "--minutes", "0.5", "--journal", "soak.jsonl"}, {}, "", [&](int pid) {
          while (content_of("soak.jsonl").find("\"interval\"") == std::string::npos && !has_ended(pid)) ::sched_yield();
          ::kill(pid, SIGKILL);
        }));
  std::vector<std::string> kinds;
  (void)read_lines("soak.jsonl", [&](const Node& entry, std::size_t) {
    for (const auto& [kind, content] : entry.members()) kinds.push_back(kind);
  });
  EXPECT_THAT(kinds, ::testing::AllOf(Contains("start"), Contains("interval")));
  const ChildResult read = exits(0, run_child({paths::sim_program, "soak", "--read", "soak.jsonl"}));
  EXPECT_NE(read.err.find("soak.jsonl: the soak did not end: of 30 s planned"), std::string::npos) << read.err;
  EXPECT_NE(read.out.find("no fault until its journal ends\n"), std::string::npos) << read.out;
}

TEST_F(Killed, AtARandomTimeARunGoesOnWithoutLosingAFinishedCase) {
  run_whole();
  const int kills = trial_count("GPUBENCH_TRIAL_KILLS", 8);
  int resumed = 0, before = 0, after = 0;
  for (int i = 0; i < kills; ++i) {
    SCOPED_TRACE(i);
    std::filesystem::remove_all("o");
    const ChildResult killed = run("--tier smoke --out o", "", [&](int pid) {
      wait_for_some_time(pid);
      ::kill(pid, SIGKILL);
    });
    EXPECT_THAT(killed.exit_code, AnyOf(0, 128 + SIGKILL)) << killed.err;
    if (const std::optional<std::size_t> finished = finished_in("o")) {
      ++resumed;
      resume(*finished);
    } else if (std::filesystem::exists("o/report.json")) {
      ++after;
      EXPECT_EQ(difference("o/report.json"), "");
    } else {
      ++before;
      EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
    }
  }
  tell_count("kills at random times", kills);
  tell_count("of these resumed", resumed);
  tell_count("of these before the first entry of the journal", before);
  tell_count("of these after the report", after);
  EXPECT_GT(resumed, 0);
}

// Interrupts each resumption, too; a run that ends before its third interruption is complete.
TEST_F(Killed, AtThreeRandomLinesARunEndsAsOneThatNobodyDisturbed) {
  run_whole();
  const int runs = trial_count("GPUBENCH_TRIAL_THRICE", 10);
  int interruptions = 0;
  for (int i = 0; i < runs; ++i) {
    SCOPED_TRACE(i);
    std::filesystem::remove_all("o");
    Words words("run --tier smoke --out o");
    for (int time = 0; time < 3; ++time) {
      const int signal = std::array{SIGINT, SIGTERM, SIGKILL}[random_() % 3];
      const std::size_t lines = time == 0 ? 0 : lines_of("o/journal.jsonl");
      const std::size_t until = lines + 1 + random_() % 8;
      const ChildResult interrupted = run(words, "cases at tier", [&](int pid) {
        while (lines_of("o/journal.jsonl") < until && !has_ended(pid)) ::sched_yield();
        ::kill(pid, signal);
      });
      EXPECT_THAT(interrupted.exit_code, AnyOf(0, 128 + signal)) << interrupted.err;
      if (!std::filesystem::exists("o/journal.jsonl")) break;
      ++interruptions;
      words = {"run", "--resume", "o"};
    }
    if (std::filesystem::exists("o/journal.jsonl")) exits(0, run(words));
    EXPECT_EQ(difference("o/report.json"), "");
  }
  tell_count("runs interrupted up to three times", runs);
  tell_count("interruptions of these that left a journal", interruptions);
  EXPECT_GT(interruptions, 2 * runs);
}

// Adopts descendants whose parent ended, so that each is counted.
class OrphanWatch {
 public:
  OrphanWatch() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  OrphanWatch(const OrphanWatch&) = delete;  // changes a setting of the process
  OrphanWatch& operator=(const OrphanWatch&) = delete;
  ~OrphanWatch() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  /// Returns their number when all have ended.
  [[nodiscard]] static int wait_for_all() {
    int count = 0;
    while (::waitpid(-1, nullptr, 0) > 0) ++count;
    return count;
  }
};

struct Interruption {
  const char* name;
  std::vector<int> signals;
  int exit_code;
};

TEST_F(Killed, AtARandomTimeAnInterruptedRunLeavesAPartialReportAndNoProcess) {
  run_whole();
  const OrphanWatch orphans;
  const int each = trial_count("GPUBENCH_TRIAL_SIGNALS", 2);
  const bool is_trial = std::getenv("GPUBENCH_TRIAL_SIGNALS") != nullptr;
  int partial = 0, whole = 0, resumed = 0, before = 0;
  for (const Interruption& way : std::vector<Interruption>{{"INT", {SIGINT}, 130},
                                                           {"TERM", {SIGTERM}, 143},
                                                           {"double INT", {SIGINT, SIGINT}, 130},
                                                           {"HUP", {SIGHUP}, 129},
                                                           {"PIPE", {SIGPIPE}, 128 + SIGPIPE}}) {
    for (int i = 0; i < each; ++i) {
      SCOPED_TRACE(testing::Message() << way.name << ' ' << i);
      std::filesystem::remove_all("o");
      auto told = std::chrono::steady_clock::now();
      const ChildResult ended = run("--tier smoke --out o", "", [&](int pid) {
        wait_for_some_time(pid);
        told = std::chrono::steady_clock::now();
        for (const int signal : way.signals) ::kill(pid, signal);
      });
      const Seconds took = std::chrono::steady_clock::now() - told;
      const int left_running = OrphanWatch::wait_for_all();
      EXPECT_THAT(ended.exit_code, AnyOf(0, way.exit_code)) << ended.err;
      if (is_trial) {
        EXPECT_LT(took.count(), 10.0);  // the documented limit
      }
      const std::optional<std::size_t> finished = finished_in("o");
      if (std::filesystem::exists("o/report.json")) {
        const Report report = read_report("o/report.json");
        EXPECT_EQ(report.run.complete, ended.exit_code == 0);
        EXPECT_EQ(report.cases.size(), 6U);
        EXPECT_EQ(left_running, 0);
        ++(report.run.complete ? whole : partial);
      } else {
        EXPECT_NE(ended.exit_code, 0);
        // Only a second signal ends a run before it can write one.
        EXPECT_TRUE(!finished || way.signals.size() == 2) << ended.err;
        if (!finished) ++before;
      }
      if (!finished) continue;
      ++resumed;
      resume(*finished);
    }
  }
  tell_count("interruptions at random times", 5 * each);
  tell_count("of these with a partial report", partial);
  tell_count("of these with a whole report", whole);
  tell_count("of these before the first entry of the journal", before);
  tell_count("of these resumed", resumed);
  EXPECT_GT(partial, 0);
}

}  // namespace
}  // namespace gpubench

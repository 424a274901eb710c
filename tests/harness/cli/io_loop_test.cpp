// Every verb that reads or writes files, with the k-th file operation failing, for all k: files under final names are
// complete, no others are left, and the exit code reports the loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "harness/report/journal.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/fakes/io_faults/io_faults.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace io_loop_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* summary_file = "summary.md";
constexpr const char* summary_start = "what stood there before\n";

using Call = Words;

struct Kind {
  std::string name;
  IoFaults faults;
};

std::vector<Kind> kinds() {
  return {{"no space", {.error = ENOSPC}},
          {"no space from there on", {.and_after = true, .error = ENOSPC}},
          {"an I/O error", {.error = EIO}},
          {"a signal", {.error = EINTR}},
          {"a short count", {.fault = Fault::short_count}}};
}

// Removes the time, and the digest that covers it.
std::string without_time(std::string text) {
  for (const std::string member : {"\"created_at\": \"", "\"digest\": \""}) {
    for (std::size_t at = text.find(member); at != std::string::npos; at = text.find(member, at + 1)) {
      const std::size_t start = at + member.size();
      text.erase(start, text.find('"', start) - start);
    }
  }
  return text;
}

class EveryVerb : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    std::filesystem::create_directory("tmp");
    write(summary_file, summary_start);
    for (const auto& [name, clock] :
         {std::pair{"a1", 1000}, {"a2", 1010}, {"a3", 1005}, {"b1", 1003}, {"b2", 1007}, {"b3", 1004}}) {
      Captured cli;
      cli.script = "clock=" + std::to_string(100 * clock);
      ASSERT_EQ(cli.run({"--isolate", "off", "--tier", "smoke", "--preset", "gate", "--filter", "last", "--json",
                         std::string(name) + ".json", "--tuning-cache", "off"}),
                0)
          << cli.err.str();
    }
    for (const auto& [name, file] : {std::pair{"old", "a1.json"}, {"new", "a2.json"}}) {
      Captured cli;
      ASSERT_EQ(cli.run({"baseline", "save", name, file, "--dir", "kept"}), 0) << cli.err.str();
    }
    Captured cli;
    ASSERT_EQ(cli.run("calibrate --from a1.json a2.json -o noise.json"), 0) << cli.err.str();
    inputs_ = files();
  }
  static std::set<std::string> files() {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(".")) {
      if (!entry.is_directory()) found.insert(entry.path().lexically_relative(".").string());
    }
    return found;
  }
  static int act(Captured& cli, const Call& call) {
    cli.variables = {{"TMPDIR", "tmp"}, {"GITHUB_STEP_SUMMARY", summary_file}};
    return cli.run(call);
  }
  void clear() const {
    for (const std::string& file : files()) {
      if (!inputs_.contains(file)) std::filesystem::remove(file);
    }
    write(summary_file, summary_start);
  }
  // Returns the number of faults injected.
  int try_all(const Call& call) const;
  void check(const Kind& kind, int code, const Captured& cli, bool may_leave_files) const;

  std::set<std::string> inputs_;
  mutable std::map<std::string, std::string> whole_;
  mutable std::string whole_summary_;
  mutable std::string said_;
};

void EveryVerb::check(const Kind& kind, int code, const Captured& cli, bool may_leave_files) const {
  for (const std::string& file : files())
    EXPECT_TRUE(may_leave_files || inputs_.contains(file) || whole_.contains(file)) << file << " is left";
  for (const auto& [file, text] : whole_) {
    if (std::filesystem::exists(file)) {
      EXPECT_EQ(without_time(content_of(file)), text) << file;
    } else {
      EXPECT_NE(code, 0) << file << " is lost";
    }
  }
  const std::string all = cli.out.str() + cli.err.str();
  EXPECT_THAT(content_of(summary_file), AnyOf(summary_start, whole_summary_));
  if (code == 0) {
    EXPECT_EQ(content_of(summary_file), whole_summary_);
    if (cli.out.str().find("unreadable: ") == std::string::npos) {
      EXPECT_EQ(cli.out.str(), said_);
    }
    return;
  }
  EXPECT_THAT(code, AnyOf(2, 3)) << all;
  EXPECT_NE(kind.faults.fault, Fault::short_count) << all;
  EXPECT_THAT(all, HasSubstr(std::strerror(kind.faults.error)));
}

int EveryVerb::try_all(const Call& call) const {
  clear();
  Captured undisturbed;
  EXPECT_EQ(act(undisturbed, call), 0) << undisturbed.err.str();
  said_ = undisturbed.out.str();
  whole_summary_ = content_of(summary_file);
  whole_.clear();
  for (const std::string& file : files()) {
    if (!inputs_.contains(file)) whole_[file] = without_time(content_of(file));
  }
  int injected = 0;
  for (Kind kind : kinds()) {
    for (int k = 1;; ++k) {
      SCOPED_TRACE(testing::Message() << kind.name << " at operation " << k);
      clear();
      kind.faults.first = k;
      Captured cli;
      int code = 0;
      bool struck = false, removal = false;
      {
        const FailingIo io(std::filesystem::current_path(), kind.faults);
        code = act(cli, call);
        struck = io.struck();
        removal = io.struck_a_removal();
      }
      if (!struck) break;
      ++injected;
      check(kind, code, cli, removal);
      if (testing::Test::HasFailure()) return injected;  // further ones would repeat the failure
    }
  }
  return injected;
}

TEST_F(EveryVerb, LeavesWholeFilesAndAnHonestExitCodeWhicheverFileOperationFails) {
  int injected = 0;
  for (const Call& call : std::vector<Call>{
           {"validate", "a1.json", "b1.json"},
           {"export", "--format", "csv", "a1.json"},
           {"export", "--format", "prometheus", "a1.json", "-o", "out.prom"},
           {"report", "a1.json", "-o", "p.html", "--svg", "svg", "--csv", "p.csv", "--junit", "p.xml"},
           {"compare", "a1.json", "b1.json", "--noise", "noise.json"},
           {"compare", "--a", "kept/old.json", "--b", "b1.json", "--format", "json"},
           {"gate", "--baseline", "a1.json", "a2.json", "a3.json", "--candidate", "b1.json", "b2.json", "b3.json",
            "--json", "g.json", "--junit", "g.xml", "--markdown", "g.md", "--github"},
           {"calibrate", "--from", "a1.json", "a2.json", "-o", "n.json"},
           {"baseline", "save", "fresh", "a1.json", "a2.json", "--dir", "made", "--noise", "noise.json"},
           {"baseline", "merge", "both", "old", "new", "--dir", "kept"},
           {"baseline", "list", "--dir", "kept"},
           {"baseline", "show", "old", "--dir", "kept"},
       }) {
    SCOPED_TRACE(call.front() + " " + call.at(1));
    const int faults = try_all(call);
    EXPECT_GT(faults, 0);
    tell_count("I/O faults in " + call[0] + " " + call[1], faults);
    injected += faults;
  }
  tell_count("I/O faults injected", injected);
}

TEST_F(EveryVerb, SaysWhenItsStandardOutputIsLost) {
  for (const Call& call : std::vector<Call>{{"list"},
                                            {"doctor"},
                                            {"validate", "a1.json"},
                                            {"export", "--format", "csv", "a1.json"},
                                            {"compare", "a1.json", "b1.json"},
                                            {"gate", "--baseline", "a1.json", "--candidate", "b1.json"},
                                            {"baseline", "list", "--dir", "kept"},
                                            {"report", "a1.json", "-o", "p.html", "--csv", "-"},
                                            {"completion", "bash"},
                                            {"man"},
                                            {"help"},
                                            {"version"}}) {
    Captured cli;
    cli.out.setstate(std::ios::badbit);
    EXPECT_NE(act(cli, call), 0) << call.front();
    EXPECT_THAT(cli.err.str(), HasSubstr("standard output could not be written")) << call.front();
  }
}

// SIGKILL before each file operation: entries of the journal, the report, its page and renames.
TEST_F(EveryVerb, ARunThatIsKilledAtAnyFileOperationGoesOnWithoutLosingAFinishedCase) {
  const auto with_flags = [](const Words& words) {
    return words + "--isolate off --tier smoke --filter first|last --tuning-cache off --progress none";
  };
  const auto findings = [](const std::string& path) {
    std::map<std::string, std::string> all;
    const Json report = read_json_file(path);
    for (const Json& one : report["gpubench"]["cases"])
      all[one["id"].get<std::string>()] = dump({one["status"], one["reason"], one["parity"]["ops"]});
    return all;
  };
  Captured whole;
  ASSERT_EQ(whole.run(with_flags("--out whole")), 0);
  const std::map<std::string, std::string> expected = findings("whole/report.json");
  ASSERT_EQ(expected.size(), 2U);
  int kills = 0, resumed = 0;
  for (int k = 1;; ++k) {
    SCOPED_TRACE(k);
    std::filesystem::remove_all("o");
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const FailingIo io(std::filesystem::current_path(), {.first = k, .fault = Fault::killed});
      Captured cli;
      ::_exit(cli.run(with_flags("--out o")));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ++kills;
    const std::string journal = content_of("o/journal.jsonl");
    Captured cli;
    if (journal.empty()) {  // not begun, or at its end: with the report, or with nothing measured
      if (std::filesystem::exists("o/report.json")) {
        EXPECT_TRUE(findings("o/report.json") == expected);
      }
      EXPECT_EQ(cli.run(with_flags("--out o --force")), 0) << cli.err.str();
    } else {
      ++resumed;
      const std::size_t finished = read_journal("o/journal.jsonl").finished.size();
      EXPECT_EQ(cli.run(with_flags("run --resume o")), 0) << cli.err.str();
      EXPECT_THAT(cli.err.str(), HasSubstr("interrupted run: " + std::to_string(finished) + " cases finished"));
    }
    EXPECT_TRUE(findings("o/report.json") == expected);
    EXPECT_FALSE(std::filesystem::exists("o/journal.jsonl"));
    if (HasFailure()) break;
  }
  tell_count("kills at file operations", kills);
  tell_count("of these resumed", resumed);
  EXPECT_GT(resumed, 16);  // 9 entries of the journal, written and synced
}

}  // namespace io_loop_test
}  // namespace gpubench

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "tests/fakes/io_faults/io_faults.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class Writing : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    std::filesystem::create_directory("tmp");
  }
  static int run(Captured& cli, const Words& more) {
    cli.variables["TMPDIR"] = "tmp";
    return cli.run("--isolate off --tier smoke --filter last --tuning-cache off" + more);
  }
  int run(const Words& more) { return run(cli_, more); }
  static std::string only_file(const std::string& folder) {
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) path = entry.path().string();
    return path;
  }
  Captured cli_;
};

TEST_F(Writing, AReportThatIsThereIsReplacedOnlyByForce) {
  ASSERT_EQ(run("--json r.json"), 0);
  const std::string first = content_of("r.json");
  for (const Words& words : std::vector<Words>{"--json r.json", "--json new.json --csv r.json"}) {
    Captured again;
    again.script = "kill@last.add";  // fails if a case starts
    EXPECT_EQ(run(again, words), 2);
    EXPECT_THAT(again.err.str(), HasSubstr("r.json: is there already; --force replaces it"));
  }
  EXPECT_EQ(content_of("r.json"), first);
  EXPECT_EQ(run("--json r.json --force"), 0);
  EXPECT_NE(content_of("r.json"), first);
  EXPECT_THAT(refusal_of("export --format csv r.json -o r.json"), HasSubstr("--force replaces it"));
}

TEST_F(Writing, ReportsAreTheirOwnersUnlessAModeIsAskedFor) {
  const auto mode_of = [](const char* path) {
    struct stat status {};
    EXPECT_EQ(::stat(path, &status), 0) << path;
    return status.st_mode & 0777U;
  };
  EXPECT_EQ(run("--out o --csv r.csv"), 0);
  for (const char* path : {"o/report.json", "o/report.html", "r.csv"}) EXPECT_EQ(mode_of(path), 0600U) << path;
  EXPECT_EQ(run("--json all.json --mode 0644"), 0);
  EXPECT_EQ(mode_of("all.json"), 0644U);
  for (const char* mode : {"0400", "0888", "1777", "-1", "rw"}) {
    Captured cli;
    EXPECT_EQ(run(cli, {"--json", "x.json", "--mode", mode}), 2) << mode;
    EXPECT_THAT(cli.err.str(), HasSubstr("is not a mode from 0600 to 0777 such as 0644"));
  }
}

// As the shell's >(command).
TEST_F(Writing, APipeOfTheShellGetsTheReport) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(run({"--json", "/dev/fd/" + std::to_string(ends[1])}), 0) << cli_.err.str();
  ::close(ends[1]);
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(got));
  ::close(ends[0]);
  EXPECT_EQ(parse_json(text, "pipe")["gpubench"]["cases"].size(), 1U);
}

TEST_F(Writing, AReportThatFindsNoRoomIsInTheTemporaryFolderAndTheLastLinesSayWhere) {
  EXPECT_EQ(run("--json /dev/full"), 3);
  const std::string rescued = only_file("tmp");
  EXPECT_EQ(read_report(rescued).cases.size(), 1U);
  EXPECT_THAT(cli_.out.str(), HasSubstr("report   " + rescued));
  EXPECT_TRUE(
      cli_.err.str().ends_with("gpubench: the report is lost: /dev/full: cannot write: No space left on device\n"
                               "gpubench: the report is in " +
                               rescued + " instead\n"))
      << cli_.err.str();
}

TEST_F(Writing, AReportThatNoFolderTakesIsOnStandardError) {
  std::filesystem::remove("tmp");
  EXPECT_EQ(run("--json /dev/full"), 3);
  const std::string err = cli_.err.str();
  const std::size_t start = err.find("\n{\n") + 1, end = err.find("\n}\n", start) + 3;
  const Json report = parse_json(err.substr(start, end - start), "standard error");
  EXPECT_EQ(report["gpubench"]["cases"].size(), 1U);
  EXPECT_TRUE(err.ends_with("it is printed above, on standard error\n")) << err;
}

TEST_F(Writing, APageThatIsLostIsToldByTheExitCode) {
  std::filesystem::create_directory("o");
  std::filesystem::create_symlink("/dev/full", "o/report.html");
  EXPECT_EQ(run("--out o"), 3);
  EXPECT_TRUE(
      cli_.err.str().ends_with("gpubench: the page is lost: o/report.html: cannot write: No space left on device\n"));
  EXPECT_EQ(read_report("o/report.json").cases.size(), 1U);
  EXPECT_EQ(only_file("tmp"), "");
}

TEST_F(Writing, AFullOrFailingDiskExitsThreeAndAForbiddenPathTwo) {
  for (const auto& [error, expected] : {std::pair{ENOSPC, 3}, {EDQUOT, 3}, {EIO, 3}, {EACCES, 2}, {EROFS, 2}}) {
    for (const Words& words :
         std::vector<Words>{"--tier smoke --out o --tuning-cache off", "--tier smoke --json r.json --tuning-cache off",
                            "--tier smoke --tuning-cache off", "explain --html pages", "impl new mine --op gemm"}) {
      Captured cli;
      cli.script = "kill@first.gemm";  // fails if a case starts
      const FailingIo io(std::filesystem::current_path(), {.first = 1, .and_after = true, .error = error});
      EXPECT_EQ(cli.run(words), expected) << words.front() << ": " << cli.err.str();
      EXPECT_THAT(cli.err.str(), HasSubstr(std::strerror(error)));
    }
  }
  ASSERT_EQ(run("--json r.json"), 0);
  EXPECT_EQ(Captured().run("export --format csv r.json -o /dev/full"), 3);
}

// Possible for a user who may rename in the folder where root runs.
TEST_F(Writing, ARunKeepsItsFolderThoughALinkTakesItsPlace) {
  std::filesystem::create_directory("victim");
  write("victim/report.html", "precious");
  const BackendEntry sim = sim_backends("").front();
  cli_.more_backends = {{"swapping", [&sim](const OpenRequest& what) {
                           std::filesystem::rename("o", "moved");
                           std::filesystem::create_directory_symlink("victim", "o");
                           return sim.open(what);
                         }}};
  EXPECT_EQ(run("--out o --force --device swapping"), 0) << cli_.err.str();
  EXPECT_EQ(content_of("victim/report.html"), "precious");
  EXPECT_EQ(only_file("victim"), "victim/report.html");
  EXPECT_EQ(read_report("moved/report.json").cases.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists("moved/journal.jsonl"));
}

TEST_F(Writing, RootsDefaultFolderIsNotALinkOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a link away";
  std::filesystem::create_directory("victim");
  std::filesystem::create_directory_symlink("victim", "gpubench-out");
  ASSERT_EQ(::lchown("gpubench-out", 65534, 65534), 0);
  EXPECT_EQ(run({}), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("cannot open the folder: it is a link of another user; name its target"));
  EXPECT_TRUE(std::filesystem::is_empty("victim"));
}

TEST_F(Writing, AnEmptyValueIsAnErrorOfEveryFlag) {
  for (const Words& words : std::vector<Words>{{"--json", ""},
                                               "--json=",
                                               {"--pin", ""},
                                               {"--out", ""},
                                               "--batch 1,,2",
                                               "--suite sim,",
                                               {"--filter", ""},
                                               {"--device", ""},
                                               "--json= --progress none"}) {
    Captured cli;
    cli.script = "kill@last.add";
    EXPECT_EQ(run(cli, words), 2) << words.front();
    EXPECT_THAT(cli.err.str(), HasSubstr(words.front().substr(0, words.front().find('=')) + ": '"));
    EXPECT_THAT(cli.err.str(), HasSubstr("has an empty value; expected "));
  }
  for (const Words& words : std::vector<Words>{{"gate", "--baseline", "a", "--candidate", "b", "--noise", ""},
                                               {"compare", "a", "b", "--noise", ""},
                                               {"calibrate", "--keep", ""},
                                               {"report", "a", "-o", ""},
                                               {"list", ""},
                                               {"validate", "a", ""}})
    EXPECT_THAT(refusal_of(words), HasSubstr("empty"));
  Captured cli;
  cli.variables["GPUBENCH_BATCH"] = "1,,2";
  EXPECT_EQ(run(cli, {}), 2);
  EXPECT_THAT(cli.err.str(), HasSubstr("GPUBENCH_BATCH: '1,,2' has an empty value"));
}

// One failing operation, and a disk that stays full from one on: files under final names are complete, and a measured
// report is somewhere.
TEST_F(Writing, WhicheverOperationFailsTheReportIsSomewhereAndTheExitCodeSaysSo) {
  int injected = 0;
  for (IoFaults faults : {IoFaults{.error = ENOSPC}, IoFaults{.and_after = true, .error = ENOSPC},
                          IoFaults{.error = EIO}, IoFaults{.error = EINTR}, IoFaults{.fault = Fault::short_count}}) {
    for (int k = 1;; ++k) {
      SCOPED_TRACE(testing::Message() << "error " << faults.error << " of operation " << k
                                      << (faults.and_after ? " and all after it" : ""));
      faults.first = k;
      for (const char* path : {"o", "tmp", "r.csv"}) std::filesystem::remove_all(path);
      std::filesystem::create_directory("tmp");
      Captured cli;
      int code = 0;
      bool struck = false;
      {
        const FailingIo io(std::filesystem::current_path(), faults);
        code = run(cli, "--out o --csv r.csv --progress none");
        struck = io.struck();
      }
      if (!struck) break;
      ++injected;
      EXPECT_THAT(code, AnyOf(0, 2, 3));
      const bool measured = cli.out.str().find("VERDICT") != std::string::npos;
      if (faults.error == ENOSPC || faults.error == EIO) {
        EXPECT_NE(code, 2) << cli.err.str();
      }
      if (faults.fault == Fault::short_count) {
        EXPECT_EQ(code, 0);
      }
      if (std::filesystem::exists("o/report.json")) {
        EXPECT_EQ(read_report("o/report.json").cases.size(), 1U);
      }
      if (std::filesystem::exists("r.csv")) {
        EXPECT_THAT(content_of("r.csv"), HasSubstr("\r\nsim/last/n=8/f32/x1,"));
      }
      if (code == 0) {
        EXPECT_TRUE(std::filesystem::exists("o/report.json"));
      }
      if (code == 2) {
        EXPECT_FALSE(measured);
      }
      if (code != 3 || !measured) continue;
      EXPECT_THAT(cli.err.str(), HasSubstr(" is lost: "));
      const bool on_disk = std::filesystem::exists("o/report.json") || !only_file("tmp").empty();
      EXPECT_TRUE(on_disk || cli.err.str().find("\"benchmarks\"") != std::string::npos);
    }
  }
  tell_count("I/O faults in run", injected);
  EXPECT_GE(injected, 100);
}

}  // namespace
}  // namespace gpubench

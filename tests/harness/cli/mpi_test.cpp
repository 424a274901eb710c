// Runs in several processes with each installed MPI: verdicts, reports, and errors if one process fails.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "harness/hardware/gpu_survey.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/child.h"
#include "tests/harness/report/report_schema.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Mpi {
  std::string library;  ///< "openmpi"; empty: none is installed
  std::string launcher;
};

std::vector<Mpi> installed() {
  std::vector<Mpi> all;
  std::istringstream pairs(paths::launchers);
  for (std::string pair; std::getline(pairs, pair, ',');)
    all.push_back({pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1)});
  if (all.empty()) all.push_back({});
  return all;
}

class InProcesses : public ScratchFolder, public ::testing::WithParamInterface<Mpi> {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    if (GetParam().launcher.empty())
      GTEST_SKIP()
          << "no MPI is installed (Debian: libopenmpi-dev openmpi-bin, or libmpich-dev mpich): nothing is tried";
  }

  // For machines with fewer processors than processes, and for tests as root.
  static ChildResult start(int processes, const std::string& program, Words words, const std::string& fault = "") {
    return run_child(Words{GetParam().launcher, "-np", std::to_string(processes), program} + words,
                     {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},                   // Open MPI 4
                      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},  // and 5
                      {"FAULTY_PROCESS", fault},
                      {"GPUBENCH_TUNING_CACHE", "off"}});
  }

  // Collectives that pass, and a training step in which process 1 fails; returns the report if there is one.
  static ChildResult start_faulty(const std::string& fault, Words more = {}) {
    const Words words = Words{"--tier", "smoke",     "--ranks",
                              "2",      "--filter",  "bert_train_step/.*/f32/x2|collectives/(broadcast|all_gather)/",
                              "--json", report_file, "--force"} +
                        more;
    return start(2, paths::faulty_processes_program, words, fault);
  }
  // mpirun of Open MPI 5.0.7 (Debian 13) crashes when it is given several commands.
  static bool starts_several_commands() { return start(1, "/bin/true", ": -np 1 /bin/true").exit_code == 0; }

  // Open MPI 5 may drop parts of long output.
  static constexpr const char* report_file = "report.json";
  [[nodiscard]] static Json report_there() { return parse_json(content_of(report_file), report_file); }
  static std::string reason_of(const Json& report) {
    for (const Json& one : report["gpubench"]["cases"]) {
      const std::string reason = one["status"] == "error" ? one["reason"].get<std::string>() : "";
      // Skips cases that had not ended when the device was lost.
      if (!reason.empty() && !reason.starts_with("the device was lost in an earlier case")) return reason;
    }
    return "";
  }
};

// Each collective on two and four processes: the only test of all of them through MPI.
TEST_P(InProcesses, EveryCollectivePassesOnTwoAndFourAndOnlyTheFirstReports) {
  for (const int processes : {2, 4}) {
    const ChildResult result =
        start(processes, paths::program,
              {"--suite", "collectives", "--tier", "smoke", "--ranks", processes == 2 ? "2" : "2,4", "--check", "full",
               "--json", report_file, "--force"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("VERDICT"), result.out.rfind("VERDICT"));
    const Json report = report_there();
    EXPECT_EQ(schema_errors(report), "");
    EXPECT_EQ(report["gpubench"]["totals"]["pass"], processes == 2 ? 13 : 28);
    for (const Json& one : report["gpubench"]["cases"])
      EXPECT_THAT(one["implementation"].get<std::string>(), HasSubstr(GetParam().library + ":"));
    const Json& libraries = report["context"]["gpubench"]["devices"][0]["libraries"];
    EXPECT_THAT(libraries["mpi"].get<std::string>(), HasSubstr(GetParam().library == "openmpi" ? "Open MPI" : "MPICH"));
  }
}

// The smallest workload with compute concurrent to collectives of several groups.
TEST_P(InProcesses, AStepOfTrainingPassesOnTwoWithItsComputeBesideItsCollectives) {
  const ChildResult result = start(2, paths::program,
                                   {"--tier", "smoke", "--ranks", "1,2", "--precision", "f32", "--filter",
                                    "transformer/(bert|vit)_train_step/", "--json", report_file, "--force"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(report_there()["gpubench"]["totals"]["pass"], 4);
}

TEST_P(InProcesses, AllOfThemAreRanksWhereNoNumberIsAskedFor) {
  const ChildResult result = start(
      3, paths::program, {"--tier", "smoke", "--filter", "collectives/broadcast/", "--json", report_file, "--force"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(report_there()["gpubench"]["cases"][0]["id"], "collectives/broadcast/bytes=65536/f32/x3");
}

TEST_P(InProcesses, ACaseIsRepeatedByALineThatStartsAsMany) {
  const ChildResult result = start_faulty("throw");
  EXPECT_THAT(result.err + result.out, HasSubstr("mpirun -np 2 gpubench run "));
}

TEST_P(InProcesses, MoreRanksThanProcessesAreUnsupportedWithTheReason) {
  const ChildResult result = start(
      2, paths::program,
      {"--tier", "smoke", "--ranks", "3", "--filter", "collectives/broadcast/", "--json", report_file, "--force"});
  const Json report = report_there();
  EXPECT_EQ(report["gpubench"]["cases"][0]["status"], "unsupported");
  EXPECT_EQ(report["gpubench"]["cases"][0]["reason"],
            "3 ranks need one process each, but only 2 were started; use mpirun -np 3");
}

TEST_P(InProcesses, AMistakeIsSaidOnceAndExitsWith2) {
  const ChildResult flag = exits(2, start(2, paths::program, "--suite nonsense"));
  const std::size_t first = flag.err.find("gpubench: suite 'nonsense'");
  ASSERT_NE(first, std::string::npos) << flag.err;
  EXPECT_EQ(flag.err.find("gpubench: suite 'nonsense'", first + 1), std::string::npos) << flag.err;
  const ChildResult device = exits(2, start(2, paths::program, "--device cuda:1"));
  EXPECT_THAT(device.err, HasSubstr("--device cuda:1: each of several processes"));
  EXPECT_THAT(exits(2, start(2, paths::program, "--virtual-ranks")).err,
              HasSubstr("--virtual-ranks: virtual ranks share one process"));
}

TEST_P(InProcesses, WithoutAGpuThatIsAskedForNothingIsMeasured) {
  if (probe_nvidia_driver().usable) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(exits(3, start(2, paths::program, "--device cuda")).err, HasSubstr("gpubench: --device cuda: "));
}

TEST_P(InProcesses, OtherVerbsAreOfTheFirstProcessAlone) {
  const ChildResult result = exits(0, start(2, paths::program, "version"));
  EXPECT_EQ(result.out.find("gpubench "), result.out.rfind("gpubench ")) << result.out;
  EXPECT_THAT(result.err, HasSubstr("started 2 processes; this is the output of the first"));
}

TEST_P(InProcesses, AnOpThatFailsCostsItsCaseAndNamesItsProcess) {
  for (const auto& [fault, text] : {std::pair{"throw", "the link is down"}, {"memory", "out of memory"}}) {
    exits(3, start_faulty(fault));
    const Json report = report_there();
    EXPECT_EQ(report["gpubench"]["totals"]["pass"], 2) << "the others have to finish";
    EXPECT_THAT(reason_of(report), AllOf(HasSubstr("rank 1: process 1 (pid "), HasSubstr(text)));
  }
}

TEST_P(InProcesses, ARankThatHangsIsNamedWithinItsDeadlineAndTheReportIsWritten) {
  exits(3, start_faulty("hang", "--deadline 3"));
  const Json report = report_there();
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_THAT(reason_of(report),
              AllOf(HasSubstr("process 1 (pid "), HasSubstr(" has made no progress for 3 s, last in '")));
}

TEST_P(InProcesses, AProcessThatIsNotHeardOfIsNamedWithinItsDeadlineAndTheReportIsWritten) {
  exits(3, start_faulty("stop", "--deadline 3"));
  EXPECT_THAT(reason_of(report_there()), AllOf(HasSubstr("process 1 (pid "), HasSubstr(" has sent nothing for 3 s")));
}

TEST_P(InProcesses, AWaitInMpiInitIsReportedAndEndsTheRun) {
  EXPECT_THAT(exits(3, start_faulty("unjoined", "--deadline 1")).err,
              AllOf(HasSubstr("note: process 0 of 2 (pid "), HasSubstr(" is still in MPI_Init after 0.2 s ("),
                    HasSubstr(" is still in MPI_Init after 1 s ("), HasSubstr("; ending the run")));
}

TEST_P(InProcesses, AProcessThatStopsAfterMpiInitIsNamedWithItsHost) {
  EXPECT_THAT(exits(3, start_faulty("joined", "--deadline 1")).err,
              AllOf(HasSubstr("note: process 0 has had no answer for 0.2 s from "),
                    HasSubstr("gpubench: process 1 (on "), HasSubstr(" has sent nothing for 1 s")));
}

TEST_P(InProcesses, OtherFlagsInOneProcessAreRefusedWithBothValues) {
  if (!starts_several_commands()) GTEST_SKIP() << "this launcher does not start several commands";
  for (const auto& [flag, here, there] : {std::array{"--seed", "1", "2"}, {"--filter", "broadcast", "all_gather"}}) {
    const ChildResult result = exits(
        2, start(1, paths::program,
                 {"--tier", "smoke", flag, here, ":", "-np", "1", paths::program, "--tier", "smoke", flag, there}));
    EXPECT_THAT(
        result.err,
        AllOf(HasSubstr("gpubench: process 1 (pid "),
              HasSubstr(fmt::format(" was started with {0} {1}, process 0 with {0} {2}; ", flag, there, here))));
  }
}

TEST_P(InProcesses, AnotherVerbInOneProcessIsRefusedByName) {
  if (GetParam().library != "openmpi") GTEST_SKIP() << "MPICH does not say that there are several command lines";
  if (!starts_several_commands()) GTEST_SKIP() << "this launcher does not start several commands";
  EXPECT_THAT(exits(2, start(1, paths::program, {"run", ":", "-np", "1", paths::program, "list"})).err,
              HasSubstr("gpubench: process 1 of 2: 'list' runs only in process 0"));
}

TEST_P(InProcesses, AProcessThatDoesNotFitIsRefusedByNameWithExitCode3) {
  for (const auto& [fault, text] : {std::pair{"build", "is of another build: "},
                                    {"library", "has other libraries: cpu, onednn 1.0.0"},
                                    {"device", "no device today"}}) {
    const ChildResult result = exits(3, start_faulty(fault));
    EXPECT_THAT(result.err, AllOf(HasSubstr("gpubench: process 1 (pid "), HasSubstr(text))) << fault;
    EXPECT_THAT(result.out, IsEmpty());
  }
}

// 20 s: two runs, each killed and resumed.
TEST_P(InProcesses, AKilledProcessEndsTheRunWhichGoesOnWhereItWas) {
  for (const Words& how_many : {Words("--ranks 2"), {}}) {
    const std::string folder = how_many.empty() ? "all" : "two";
    const Words words =
        Words{"--tier", "smoke", "--filter", "bert_train_step/.*/f32/x2|collectives/(broadcast|all_gather)/",
              "--out",  folder} +
        how_many;
    const ChildResult killed = start(2, paths::faulty_processes_program, words, "kill");
    EXPECT_NE(killed.exit_code, 0) << killed.err;
    EXPECT_TRUE(std::filesystem::exists(folder + "/journal.jsonl"));
    EXPECT_THAT(exits(0, start(2, paths::faulty_processes_program, {"run", "--resume", folder})).out,
                HasSubstr("3 pass of 3 cases"));
  }
}

INSTANTIATE_TEST_SUITE_P(Mpi, InProcesses, ::testing::ValuesIn(installed()), [](const auto& named) {
  return named.param.library.empty() ? std::string("none") : named.param.library;
});

}  // namespace
}  // namespace gpubench

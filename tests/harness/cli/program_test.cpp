// The program with its worker processes, on the sim backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/child.h"
#include "tests/harness/report/report_schema.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace program_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class Program : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words, const std::string& script = "", const std::string& wait_for = "",
                         const std::function<void(int)>& while_running = {}) {
    return run_child(Words{paths::sim_program} + words, {{"GPUBENCH_SIM_SCRIPT", script}}, wait_for, while_running);
  }
  static Json valid_report(const std::string& text) {
    Json report = parse_json(text, "stdout");
    EXPECT_EQ(schema_errors(report), "");
    return report;
  }
};

TEST_F(Program, RunsEveryCaseInAWorkerAndExitsZero) {
  const ChildResult result = exits(0, run("--suite all --tier smoke --json -"));
  const Json report = valid_report(result.out);
  EXPECT_EQ(report["gpubench"]["totals"]["pass"], 6);
  EXPECT_EQ(report["context"]["gpubench"]["devices"][0]["kind"], "sim");
}

ChildResult run_in_shell(const std::string& commands) {
  return run_child({"/bin/sh", "-c", commands, paths::sim_program});
}

TEST_F(Program, ClosedDescriptorsFailNoCase) {
  for (const char* closed : {"<&-", "2>&-", "<&- 2>&-"}) {
    const ChildResult result = run_in_shell(std::string("\"$0\" --tier smoke --json - ") + closed);
    EXPECT_EQ(result.exit_code, 0) << closed << result.err;
    EXPECT_EQ(valid_report(result.out)["gpubench"]["totals"]["pass"], 6) << closed;
  }
}

// The report must not go to a file that got the number of standard output.
TEST_F(Program, AClosedStandardOutputIsALostReport) {
  exits(3, run_in_shell("\"$0\" --tier smoke --json - >&-"));
  exits(3, run_in_shell("\"$0\" --tier smoke --json r.json <&- >&- 2>&-"));
  EXPECT_EQ(valid_report(content_of("r.json"))["gpubench"]["totals"]["pass"], 6);
}

TEST_F(Program, AnIgnoredSigchldFailsNoCase) {
  const ChildResult result = exits(0, run_in_shell("trap '' CHLD; exec \"$0\" --tier smoke --json -"));
  EXPECT_EQ(valid_report(result.out)["gpubench"]["totals"]["pass"], 6);
}

TEST_F(Program, WithoutProcItRunsWithWhatItKnows) {
#ifdef GPUBENCH_SANITIZED
  GTEST_SKIP() << "the sanitizers themselves read /proc";
#endif
  const std::string without = "mount -t tmpfs none /proc && ";
  if (run_in_shell("unshare --mount sh -c '" + without + "true'").exit_code != 0)
    GTEST_SKIP() << "mounts are not permitted here";
  const ChildResult result =
      exits(0, run_in_shell("unshare --mount sh -c '" + without + "\"$0\" --tier smoke --json -' \"$0\""));
  EXPECT_EQ(valid_report(result.out)["gpubench"]["totals"]["pass"], 6);
}

TEST_F(Program, AWorkerIsDeterministicWhereItsSupervisorIs) {
  const auto implementation = [](const Words& words, const std::map<std::string, std::string>& variables) {
    const Words all = Words{paths::sim_program, "--tier", "smoke", "--filter", "last", "--json", "-"} + words;
    const ChildResult result = exits(0, run_child(all, variables));
    return valid_report(result.out)["gpubench"]["cases"][0]["implementation"].get<std::string>();
  };
  EXPECT_EQ(implementation({}, {}), "sim:textbook");
  EXPECT_EQ(implementation("--deterministic", {}), "sim:textbook,deterministic");
  EXPECT_EQ(implementation({}, {{"GPUBENCH_DETERMINISTIC", "on"}}), "sim:textbook,deterministic");
}

TEST_F(Program, WorkersRememberAndANoteOfTheirsIsToldOnce) {
  const Words words("--tier smoke --tuning-cache cache --json -");
  const auto first_choice = [](const ChildResult& result) {
    return valid_report(result.out)["gpubench"]["cases"][0]["choice"].get<std::string>();
  };
  EXPECT_EQ(first_choice(run(words, "fastest=b")), "timed");
  EXPECT_EQ(first_choice(run(words, "fastest=a")), "remembered");
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator("cache")) file = entry.path();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);

  // The second case ends its worker, so two workers find the folder in place of the file.
  const ChildResult spoilt = exits(3, run(words, "fastest=b;kill@chain.down"));
  EXPECT_EQ(first_choice(spoilt), "timed");
  EXPECT_THAT(spoilt.err, HasSubstr("note: choices are not stored: cache/simulated-device-"));
  EXPECT_EQ(spoilt.err.find("not stored"), spoilt.err.rfind("not stored"));
}

TEST_F(Program, AWrongElementExitsOneAndCostsNoOtherCase) {
  const ChildResult result = exits(1, run("--tier smoke --json -", "wrong_element@update.gemm"));
  const Json report = valid_report(result.out);
  EXPECT_EQ(report["gpubench"]["totals"]["fail"], 1);
  EXPECT_EQ(report["gpubench"]["totals"]["pass"], 5);
  EXPECT_THAT(result.err, HasSubstr("update.gemm"));
}

TEST_F(Program, AKilledWorkerCostsItsCaseExitsThreeAndNoOther) {
  const ChildResult result = exits(3, run("--tier smoke --json -", "kill@chain.down"));
  const Json report = valid_report(result.out);
  EXPECT_EQ(report["gpubench"]["totals"]["error"], 1);
  EXPECT_EQ(report["gpubench"]["totals"]["pass"], 5);
  EXPECT_EQ(report["gpubench"]["cases"][1]["status"], "error");
}

TEST_F(Program, AnInterruptWritesAPartialReport) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}}) {
    // The last case hangs; the signal comes after the plan is printed.
    const ChildResult result = exits(code, run("--tier smoke --out out --force", "hang@last.add", "cases at tier",
                                               [signal = signal](int pid) { ::kill(pid, signal); }));
    const Json report = read_json_file("out/report.json");
    EXPECT_EQ(schema_errors(report), "");
    EXPECT_EQ(report["context"]["gpubench"]["complete"], false);
    EXPECT_EQ(report["gpubench"]["cases"].size(), 6U);
    EXPECT_THAT(result.out, ::testing::AllOf(HasSubstr("VERDICT  INCOMPLETE"), HasSubstr("report   out/report.json")));
  }
}

TEST_F(Program, ABackendThatDoesNotStartExitsThreeAndSaysWhy) {
  const ChildResult result = exits(3, run("--tier smoke --json -", "no such fault"));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::AllOf(HasSubstr("the sim backend does not start"), HasSubstr("no such fault")));
}

TEST_F(Program, CalibrateRunsItselfAndWritesTheNoiseThatTheGateReads) {
  const ChildResult result =
      exits(0, run("calibrate --runs 3 --tier smoke --preset gate --filter sim/first --keep runs -o noise.json",
                   "clock=100000;wanders"));
  EXPECT_THAT(result.err, HasSubstr("calibrate: run 3 of 3"));
  EXPECT_THAT(result.out, HasSubstr("1 cases, 3 runs"));
  const Json noise = read_json_file("noise.json");
  EXPECT_EQ(noise["schema"], "gpubench-noise");
  EXPECT_EQ(schema_errors(noise, "noise.v1.json"), "");
  EXPECT_EQ(noise["invocations"], 3);
  EXPECT_EQ(noise["cases"]["sim/first/n=8/f32/x1"]["runs"], 3);
  std::set<std::string> ids;
  for (const char* file : {"runs/run-001.json", "runs/run-002.json", "runs/run-003.json"}) {
    const Json report = read_json_file(file);
    EXPECT_EQ(schema_errors(report), "") << file;
    ids.insert(report["context"]["gpubench"]["invocation"].get<std::string>());
  }
  EXPECT_EQ(ids.size(), 3U);
}

// The runs inherit the flag, so kept reports and the noise file contain no names.
TEST_F(Program, CalibrateIsAsAnonymousAsItsRuns) {
  exits(0, run("calibrate --runs 2 --tier smoke --preset gate --filter sim/first --keep runs -o noise.json --anonymize "
               "--anonymize-key key",
               "clock=100000;wanders"));
  for (const char* file : {"runs/run-001.json", "runs/run-002.json"}) {
    const Json context = read_json_file(file)["context"];
    EXPECT_THAT(context["host_name"].get<std::string>(), StartsWith("host-")) << file;
    EXPECT_EQ(context["executable"], "gpubench") << file;
  }
  EXPECT_EQ(dump(read_json_file("noise.json")).find(paths::sim_program), std::string::npos);
  EXPECT_THAT(exits(2, run("calibrate --from runs/run-001.json runs/run-002.json --anonymize")).err,
              HasSubstr("gpubench export --format report --anonymize makes them anonymous"));
}

TEST_F(Program, CalibrateEndsAsItsRunsDo) {
  const ChildResult empty = exits(5, run("calibrate --runs 3 --filter ^nothing$"));
  EXPECT_EQ(empty.err.find("run 2 of 3"), std::string::npos);
  EXPECT_THAT(exits(3, run("calibrate --runs 2 --tier smoke --filter sim/first", "clock=100000")).err,
              HasSubstr("the noise from run to run is 0.00%"));
  exits(143, run("calibrate --runs 3 --tier smoke", "hang@last.add", "cases at tier",
                 [](int pid) { ::kill(pid, SIGTERM); }));
  EXPECT_TRUE(std::filesystem::is_empty("."));
}

// After the first signal, a run ends its worker and writes its report. This worker ignores SIGTERM, so the second
// signal comes first: no report, unless both came together. Standard error closes when all three processes have ended.
TEST_F(Program, ASecondSignalEndsCalibrateItsRunAndTheWorkerAtOnce) {
  const Words words{paths::sim_program, "calibrate", "--runs", "3", "--tier", "smoke", "--keep", "runs"};
  // None; one right after the first, as from a script that ends everything; a user's.
  for (const std::chrono::milliseconds later : {-1ms, 0ms, 400ms}) {
    exits(143, run_child_in_steps(
                   words, {{"GPUBENCH_SIM_SCRIPT", "stubborn@first.gemm"}},
                   {{"sim: hangs", [](int pid) { ::kill(pid, SIGTERM); }}, {"sim: goes on", [later](int pid) {
                                                                              std::this_thread::sleep_for(later);
                                                                              ::kill(pid, later < 0ms ? 0 : SIGINT);
                                                                            }}}));
    EXPECT_EQ(std::filesystem::exists("runs/run-001.json"), later < 400ms) << later.count();
    std::filesystem::remove_all("runs");
  }
}

// As timeout(1): a signal to the process, then to its group. The worker prints when the run has received the first.
TEST_F(Program, TheSameSignalAgainFromTheSameProcessIsTheSameWish) {
  const ChildResult result =
      exits(143, run_child_in_steps({paths::sim_program, "--tier", "smoke", "--json", "again.json"},
                                    {{"GPUBENCH_SIM_SCRIPT", "stubborn@first.gemm"}},
                                    {{"sim: hangs", [](int pid) { ::kill(pid, SIGTERM); }},
                                     {"sim: goes on", [](int pid) { ::kill(pid, SIGTERM); }}}));
  EXPECT_TRUE(std::filesystem::exists("again.json")) << result.err;
}

// As a service manager: a signal to every process of a service; calibrate also passes it on to its run.
TEST_F(Program, ASignalToCalibrateAndItsRunIsOneWish) {
  const auto child_of = [](int pid) {
    std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
    int child = 0;
    children >> child;
    return child;
  };
  const ChildResult result = exits(
      143, run_child_in_steps({paths::sim_program, "calibrate", "--runs", "3", "--tier", "smoke", "--keep", "runs"},
                              {{"GPUBENCH_SIM_SCRIPT", "stubborn@first.gemm"}},
                              {{"sim: hangs", [&](int pid) { ::kill(child_of(pid), SIGTERM); }},
                               {"sim: goes on", [](int pid) { ::kill(pid, SIGTERM); }}}));
  EXPECT_TRUE(std::filesystem::exists("runs/run-001.json")) << result.err;
}

TEST_F(Program, DoctorAsksTheBackendInAChild) {
  EXPECT_THAT(exits(0, run("doctor")).out, HasSubstr("backend sim starts"));
}

TEST_F(Program, AReaderThatWentAwayIsNoCrash) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string out = "/dev/fd/" + std::to_string(ends[1]);
  const ChildResult result = run({"--tier", "smoke", "--filter", "last", "--json", out});
  ::close(ends[1]);
  EXPECT_THAT(result.exit_code, ::testing::AnyOf(2, 3)) << result.err;
}

}  // namespace program_test
}  // namespace gpubench

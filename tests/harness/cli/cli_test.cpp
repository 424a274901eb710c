// The command line on the sim backend, in one process: exit codes, streams, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/core/text/terminal_width.h"
#include "tests/harness/report/report_schema.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

/// GPUs that open as the sim backend with this script.
Captured with_gpus(int devices, const std::string& script = "") {
  return {.driver = {.usable = true, .devices = devices, .reason = {}},
          .more_backends = {{"cuda", [script](const OpenRequest&) { return open_sim_backend(script); }}}};
}

class Cli : public ScratchFolder {
 protected:
  // In this process; the report is the only standard output.
  int run_to_stdout(Words more = {}) { return cli_.run("--isolate off --tier smoke --json -" + more); }
  Json document() const { return parse_json(cli_.out.str(), "stdout"); }
  static bool nothing_written() { return std::filesystem::is_empty("."); }

  Captured cli_;
};

TEST_F(Cli, AGoodRunExitsZeroAndStandardOutputIsExactlyOneValidReport) {
  EXPECT_EQ(run_to_stdout(), 0);
  const Json report = document();  // all of stdout is one document
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_EQ(report["gpubench"]["totals"]["pass"], 6);
  EXPECT_EQ(report["gpubench"]["cases"].size(), 6U);
  EXPECT_EQ(report["gpubench"]["cases"][0]["id"], "sim/first/n=8/f32/x1");
  EXPECT_EQ(report["context"]["gpubench"]["complete"], true);
  EXPECT_EQ(report["context"]["gpubench"]["tier"], "smoke");
  EXPECT_EQ(report["context"]["gpubench"]["devices"][0]["kind"], "sim");
  EXPECT_GE(report["benchmarks"].size(), 6U * 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("VERDICT  PASS  6 pass of 6 cases"));
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, AClockThatJumpsMovesNoDuration) {
  for (const int jump_s : {3600, -3600}) {
    cli_.out.str("");
    std::time_t now = 1700000000;  // 2023-11-14T22:13:20
    cli_.time_of_day = [&] { return std::exchange(now, 1700000000 + jump_s); };
    EXPECT_EQ(run_to_stdout(), 0);
    const Json report = document();
    const auto moment = [&](const char* of) { return report["context"]["gpubench"][of].get<std::string>(); };
    EXPECT_EQ(moment("started_at").substr(0, 10), "2023-11-14");
    EXPECT_GE(moment("finished_at"), moment("started_at"));  // text order is time order in one time zone
    EXPECT_LT(moment("finished_at").substr(0, 16), "2023-11-14T22:20");
    EXPECT_EQ(schema_errors(report), "");
  }
}

TEST_F(Cli, AFailureExitsOneNamesTheOpAndStaysOutOfBenchmarks) {
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run_to_stdout(), 1);
  const Json report = document();
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_EQ(report["gpubench"]["cases"][0]["status"], "fail");
  EXPECT_EQ(report["gpubench"]["totals"]["pass"], 5);
  for (const Json& entry : report["benchmarks"]) EXPECT_NE(entry["run_name"], "sim/first/n=8/f32/x1");
  EXPECT_THAT(cli_.err.str(), HasSubstr("f1  FAIL  sim/first/n=8/f32/x1\n    op      first.gemm (gemm)"));
  EXPECT_THAT(cli_.err.str(),
              HasSubstr("rerun   gpubench run --filter '^sim/first/n=8/f32/x1$' --tier smoke --seed 42"));
  EXPECT_THAT(cli_.err.str(), HasSubstr("exit 1"));
}

TEST_F(Cli, AFaultOfTheTimedSequenceOnlyIsFoundToo) {
  cli_.script = "drop/sequence@chain.down";
  EXPECT_EQ(run_to_stdout("--filter chain"), 1);
  EXPECT_THAT(cli_.err.str(), HasSubstr("chain.down"));
}

TEST_F(Cli, ACaseThatCannotBeMeasuredExitsThree) {
  cli_.script = "out_of_memory@last.add";
  EXPECT_EQ(run_to_stdout(), 3);
  EXPECT_EQ(document()["gpubench"]["totals"]["error"], 1);
  EXPECT_EQ(document()["gpubench"]["totals"]["pass"], 5);
}

TEST_F(Cli, AWrongVerdictCountsBeforeACaseThatCouldNotBeMeasured) {
  cli_.script = "out_of_memory@last.add;wrong_element@first.gemm";
  EXPECT_EQ(run_to_stdout(), 1);
}

TEST_F(Cli, AnErrorOnPurposeFailsAndIsToldBeforeTheRunInTheReportAndInTheRerunLine) {
  EXPECT_EQ(run_to_stdout("--inject-error chain.down=bit"), 1);
  const Json report = document();
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_EQ(report["context"]["gpubench"]["injected"], "chain.down=bit");
  EXPECT_EQ(report["gpubench"]["totals"]["fail"], 1);
  EXPECT_THAT(cli_.err.str(),
              AllOf(HasSubstr("INJECTED ERROR: the output of op chain.down is corrupted in 1 cases, kind bit"),
                    HasSubstr("[injected error]"), HasSubstr("f1  FAIL  sim/chain"),
                    HasSubstr("gpubench run --inject-error chain.down=bit --filter '^sim/chain")));
  Captured baseline;
  EXPECT_EQ(baseline.run("--isolate off --tier smoke --json wrong.json --inject-error gemm=nan"), 1);
  EXPECT_THAT(refusal_of("baseline save main wrong.json"),
              HasSubstr("was measured with an injected fault, gemm=nan, and cannot be a baseline"));
}

// 1 - 0.9^3 = 0.271
TEST_F(Cli, RechecksAndWhatTheyAreWorthAreToldBeforeTheRunAndInEachCase) {
  EXPECT_EQ(run_to_stdout("--recheck 3"), 0);
  const std::string told = "3 rechecks: a fault in 1 of 10 launches is seen with 27%";
  EXPECT_THAT(unwrapped(cli_.err.str()), HasSubstr(told));
  EXPECT_THAT(cli_.out.str(), HasSubstr("bit for bit; " + told));
}

TEST_F(Cli, AnErrorOnPurposeThatMakesNoSenseIsRefusedAndRunsNothing) {
  for (const auto& [word, said] :
       std::vector<std::pair<std::string, std::string>>{{"gem=bit", "no planned case runs an op 'gem'; kinds of ops:"},
                                                        {"gemm=bid",
                                                         "'bid' is not one of bit, nan, zero, sign, scale, drop, "
                                                         "lanes, input, overrun, late, rare; did you mean 'bit'?"},
                                                        {"gemm", "is not OP=KIND as in gemm=bit"},
                                                        {"=bit", "is not OP=KIND as in gemm=bit"}}) {
    EXPECT_THAT(refusal_of({"--isolate", "off", "--tier", "smoke", "--inject-error", word},
                           {.script = "kill@first.gemm"}),  // fails if a case starts
                HasSubstr(said));
  }
}

TEST_F(Cli, UnsupportedAloneIsNothingRan) {
  cli_.script = "unsupported@last.add";
  EXPECT_EQ(run_to_stdout("--filter last"), 5);
  EXPECT_EQ(document()["gpubench"]["cases"][0]["status"], "unsupported");
  cli_.out.str("");
  EXPECT_EQ(run_to_stdout(), 0);
}

TEST_F(Cli, WithoutTheCheckNothingIsVerifiedAndItSaysSo) {
  EXPECT_EQ(run_to_stdout("--check off --filter first"), 0);
  EXPECT_EQ(document()["gpubench"]["cases"][0]["status"], "unverified");
  EXPECT_EQ(document()["benchmarks"].size(), 0U);
  EXPECT_EQ(schema_errors(document()), "");
  EXPECT_THAT(cli_.err.str(), HasSubstr("NOTHING WAS VERIFIED"));
  EXPECT_THAT(cli_.err.str(), HasSubstr("exit 0   nothing failed, and nothing was verified"));
}

TEST_F(Cli, AnEmptySelectionExitsFiveAndRunsNothing) {
  EXPECT_EQ(run_to_stdout("--filter ^nothing$"), 5);
  EXPECT_EQ(cli_.out.str(), "");
  EXPECT_THAT(cli_.err.str(), HasSubstr("no case matches: tier smoke, --filter ^nothing$"));
  EXPECT_EQ(cli_.run("list --filter ^nothing$"), 5);
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, UnknownNamesExitTwoWithTheNearestAndRunNothing) {
  const std::pair<Words, const char*> calls[] = {
      {"--suite sm", "sim"},
      {"--suite nosuch", "known: all, sim"},
      {"--precision f31", "f32"},
      {"--arithmetic tf3", "did you mean 'tf32'?"},
      {"--axis q=1", "q"},
      {"--filter (", "("},
      {"--device sum", "did you mean 'sim'?"},
      {"--launch graphs", "graph"},
      {"--launch graph", "the sim backend has no graphs"},
      {"--fuse of", "off"},
      {"--tier smol", "smoke, quick, standard, large"},
      {"--sute sim", "did you mean '--suite'?"},
      {"rn", "did you mean 'run'?"},
      {"list sim/frist/n=8/f32/x1", "did you mean 'sim/first/n=8/f32/x1'?"},
      {"help lost", "did you mean 'list'?"},
  };
  for (const auto& [words, expected] : calls) EXPECT_THAT(refusal_of(words), HasSubstr(expected));
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, ArithmeticThatIsAcceptedIsInTheReportAndInRerunLines) {
  EXPECT_EQ(run_to_stdout("--filter last --arithmetic tf32,bf16_sums"), 0);
  EXPECT_EQ(document()["context"]["gpubench"]["arithmetic"], Json({"tf32", "bf16_sums"}));
  EXPECT_THAT(cli_.err.str(), HasSubstr(", accepting tf32 and bf16_sums"));
  EXPECT_THAT(document()["gpubench"]["cases"][0]["rerun"].get<std::string>(), HasSubstr("--arithmetic tf32,bf16_sums"));
}

TEST_F(Cli, TheEnvironmentStandsInForFlagsAndIsTold) {
  cli_.variables = {{"GPUBENCH_TIER", "smoke"}, {"GPUBENCH_SEDE", "3"}, {"GPUBENCH_FILTER", "last"}};
  EXPECT_EQ(run_to_stdout(), 0);
  EXPECT_EQ(document()["gpubench"]["cases"].size(), 1U);
  EXPECT_EQ(document()["context"]["gpubench"]["env"]["GPUBENCH_FILTER"], "last");
  EXPECT_THAT(cli_.err.str(), HasSubstr("from the environment: GPUBENCH_FILTER=last\n"));  // --tier was given
  EXPECT_THAT(cli_.err.str(),
              HasSubstr("warning: GPUBENCH_SEDE is set, but matches no flag; did you mean GPUBENCH_SEED?"));
  EXPECT_THAT(refusal_of({}, {.variables = {{"GPUBENCH_SUITE", "sm\x1b[2J"}}}),
              AllOf(HasSubstr("set in the environment: GPUBENCH_SUITE=sm\\x1b[2J"), Not(HasSubstr("\x1b"))));
}

TEST_F(Cli, MessagesAboutHostileArgumentsCannotSteerATerminal) {
  for (const Words& words : std::vector<Words>{{"\x1b[2J"},
                                               {"--\x1b[2J"},
                                               {"--suite", "\x1b[2J"},
                                               {"--filter", "\x1b[2J"},
                                               {"--tier", "\x1b[2J"},
                                               {"--device", "\x1b[2J"},
                                               {"--json", "/nonexistent/\x1b[2J"},
                                               {"--precision", "\x1b[2J"},
                                               {"list", "\x1b[2J"}}) {
    Captured cli;
    EXPECT_THAT(cli.run(words), AnyOf(2, 5));
    EXPECT_THAT(cli.err.str(), AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1b[2J")));
  }
}

TEST_F(Cli, CudaWithoutADriverExitsThreeAndNeverFallsBack) {
  EXPECT_EQ(cli_.run("--device cuda"), 3);
  EXPECT_THAT(cli_.err.str(), HasSubstr("no NVIDIA driver: libcuda.so.1 cannot be loaded"));
  EXPECT_EQ(cli_.out.str(), "");
  EXPECT_THAT(exits(3, ran("--device cuda", {.driver = {.usable = true, .devices = 1, .reason = {}}})).err,
              HasSubstr("this build has no CUDA backend"));
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, AutoSaysWhichDeviceItTakesAndWhyInTheFirstLine) {
  EXPECT_EQ(cli_.run("--dry-run"), 0);
  EXPECT_THAT(cli_.err.str(), MatchesRegex("gpubench [0-9.]+, device: sim .no NVIDIA driver found.\n.*"));
  Captured hidden;
  hidden.driver.hardware_seen = true;
  EXPECT_EQ(hidden.run("--dry-run"), 0);
  EXPECT_THAT(hidden.err.str(), HasSubstr("no NVIDIA driver found, but an NVIDIA device: see gpubench doctor"));
  const char* old = "the NVIDIA driver supports CUDA 12.2; this build needs 13.0";
  EXPECT_THAT(exits(0, ran("--dry-run", {.driver = {.reason = old}})).err,
              HasSubstr("device: sim (" + std::string(old) + ")"));
  exits(0, ran("list --format json", with_gpus(2)));
  EXPECT_THAT(exits(0, ran("--dry-run", with_gpus(2))).err, HasSubstr("device: cuda (NVIDIA driver with 2 device(s))"));
}

TEST_F(Cli, ADeviceBeyondTheLastIsAUsageErrorThatListsThem) {
  for (const auto& [device, said] : std::vector<std::pair<std::string, std::string>>{
           {"cuda:7", "there is no cuda:7; the driver shows 2 device(s): cuda:0, cuda:1"},
           {"cuda:2", "the driver shows 2 device(s): cuda:0, cuda:1"},
           {"cuda:", "expected cuda or cuda:N with N from 0"},
           {"cuda:-1", "expected cuda or cuda:N with N from 0"},
           {"cuda:1x", "expected cuda or cuda:N with N from 0"},
           {"cuda:99999999999", "expected cuda or cuda:N with N from 0"}})
    EXPECT_THAT(refusal_of({"--device", device}, with_gpus(2)), HasSubstr(said));
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, MoreRanksThanGpusAreAUsageErrorUnlessTheyAreVirtual) {
  Captured gpu = with_gpus(2);
  gpu.more_backends.front().has_virtual_ranks = true;
  EXPECT_EQ(gpu.run("--device cuda:1 --ranks 1,2"), 2);
  EXPECT_THAT(gpu.err.str(), HasSubstr("--ranks 2: each rank needs a separate GPU, but from cuda:1 on the driver "
                                       "reports 1; expected no more, or --virtual-ranks to check them all on one"));
  EXPECT_THAT(refusal_of("--device cuda:1 --ranks 1,2 --virtual-ranks",
                         {.driver = gpu.driver, .more_backends = gpu.more_backends}),
              HasSubstr("the selected suites run on 1 rank only"));  // the next error
  EXPECT_THAT(refusal_of("--virtual-ranks"), HasSubstr("ranks of the sim backend never share a device"));
}

TEST_F(Cli, PinnedImplementationsAreTakenOrUnsupported) {
  EXPECT_EQ(cli_.run("--isolate off --json first.json --filter sim/(first|last)"), 0);
  EXPECT_EQ(Captured().run("--isolate off --pin first.json --filter sim/(first|last)"), 0);
  Json edited = read_json_file("first.json");
  for (Json& op : edited["gpubench"]["cases"][0]["parity"]["ops"]) op["implementation"] = "sim:other";
  edited.erase("digest");  // would no longer match
  std::ofstream("edited.json") << edited.dump();
  const ChildResult other = exits(0, ran("--isolate off --pin edited.json --filter sim/(first|last)"));
  EXPECT_THAT(unwrapped(other.out), HasSubstr("is pinned to sim:other; here it is sim:textbook"));
  EXPECT_THAT(other.out, HasSubstr("1 pass, 1 unsupported of 2 cases"));
}

TEST_F(Cli, APinFileThatIsNoReportIsAUsageErrorAndRunsNothing) {
  std::ofstream("text.json") << "{}";
  for (const char* file : {"text.json", "missing.json"})  // fails if a case starts
    EXPECT_THAT(refusal_of({"--isolate", "off", "--pin", file}, {.script = "kill@first.gemm"}),
                AllOf(HasSubstr("--pin"), HasSubstr(file)));
}

TEST_F(Cli, ARerunLineAsksForTheLaunchModeOfItsCase) {
  Captured gpu = with_gpus(1, "wrong_element@first.gemm");
  gpu.more_backends.front().has_graphs = true;
  EXPECT_EQ(gpu.run("--device cuda --isolate off --launch stream --filter sim/first"), 1);
  EXPECT_THAT(gpu.out.str(),
              HasSubstr("gpubench run --launch stream --device cuda --filter '^sim/first/n=8/f32/stream/x1$'"));
}

TEST_F(Cli, ARunWithoutFusingSaysSoInItsIdsAndRerunLines) {
  EXPECT_THAT(exits(0, ran("list --fuse off --filter sim/first")).out, HasSubstr("sim/first/n=8/f32/unfused/x1"));
  EXPECT_THAT(exits(1, ran("--device cuda --isolate off --fuse off --filter sim/first",
                           with_gpus(1, "wrong_element@first.gemm")))
                  .out,
              HasSubstr("gpubench run --fuse off --device cuda --filter '^sim/first/n=8/f32/unfused/x1$'"));
}

// The sim device has no sensors, so unknown values are reported as such.
TEST_F(Cli, ALockedClockIsToldInTheReportTheHeadAndRerunLinesAndRefusedOnACpu) {
  cli_.columns = 200;
  cli_.driver = {.usable = true, .devices = 1, .reason = {}};
  cli_.more_backends = {{"cuda", [](const OpenRequest&) { return open_sim_backend("wrong_element@chain.down"); }}};
  EXPECT_EQ(run_to_stdout("--device cuda --locked-clock 1980"), 1);
  const Json report = document();
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_EQ(report["context"]["gpubench"]["locked_clock_mhz"], 1980);
  const Json& flags = report["gpubench"]["cases"][0]["summary"]["flags"];
  EXPECT_NE(std::find(flags.begin(), flags.end(), "clock unknown"), flags.end()) << flags;
  EXPECT_THAT(cli_.err.str(), HasSubstr("seed 42, SM clock locked at 1980 MHz"));
  EXPECT_THAT(cli_.err.str(), HasSubstr("gpubench run --device cuda --locked-clock 1980 --filter '^sim/chain"));

  Captured cpu;
  cpu.more_backends = {{"cpu", [](const OpenRequest&) { return open_sim_backend(""); }}};
  EXPECT_EQ(cpu.run("--device cpu --isolate off --locked-clock 1980"), 2);
  EXPECT_THAT(cpu.err.str(), HasSubstr("--locked-clock: a CPU has no SM clock"));
}

TEST_F(Cli, ADeterministicRunAsksTheBackendForItAndSaysSoInItsReportAndRerunLines) {
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run_to_stdout("--deterministic --filter first"), 1);
  EXPECT_EQ(schema_errors(document()), "");
  EXPECT_EQ(document()["context"]["gpubench"]["deterministic"], true);
  EXPECT_EQ(document()["gpubench"]["cases"][0]["implementation"], "sim:textbook,deterministic");
  EXPECT_THAT(cli_.err.str(), HasSubstr("seed 42, deterministic\n"));
  EXPECT_THAT(cli_.err.str(), HasSubstr("rerun   gpubench run --deterministic --filter '^sim/first/n=8/f32/x1$'"));

  const ChildResult usual = exits(0, ran("--isolate off --json - --filter first"));
  const Json report = parse_json(usual.out, "stdout");
  EXPECT_EQ(report["context"]["gpubench"]["deterministic"], false);
  EXPECT_EQ(report["gpubench"]["cases"][0]["implementation"], "sim:textbook");
  EXPECT_THAT(usual.err, Not(HasSubstr("deterministic")));
}

TEST_F(Cli, TheOrdinalReachesTheBackend) {
  Captured gpu;
  int opened = -1;
  gpu.driver = {.usable = true, .devices = 4, .reason = {}};
  gpu.more_backends = {{"cuda", [&opened](const OpenRequest& what) -> std::unique_ptr<Backend> {
                          opened = what.ordinal;
                          throw BackendError("enough seen");
                        }}};
  EXPECT_EQ(gpu.run("--device cuda:3 --isolate off"), 3);
  EXPECT_EQ(opened, 3);
  EXPECT_THAT(gpu.err.str(), HasSubstr("device: cuda:3 (asked for)"));
}

TEST_F(Cli, WithoutPrecisionARunTakesTheRecipesThatTheDeviceHas) {
  const auto other_device = [](Captured& cli) {
    cli.driver = {.usable = true, .devices = 1, .reason = {}};
    cli.more_backends = {{"cuda", [](const OpenRequest&) { return std::unique_ptr<Backend>(); },
                          [](int) { return std::vector<std::string>{"bf16"}; }}};
  };
  Captured nothing, asked, named, counted;  // all cases of the sim suite are f32
  for (Captured* cli : {&nothing, &asked, &named, &counted}) other_device(*cli);

  EXPECT_EQ(nothing.run("list"), 5);
  EXPECT_EQ(asked.run("list --precision f32"), 0);
  EXPECT_THAT(asked.out.str(), HasSubstr("sim/packed/n=8/f32/x1"));
  EXPECT_EQ(named.run("list packed"), 0);  // names are searched in all recipes
  EXPECT_THAT(named.out.str(), HasSubstr("packed.gemm"));
  EXPECT_EQ(counted.run("list suites --format json"), 0);
  EXPECT_EQ(parse_json(counted.out.str(), "stdout")["suites"][0]["cases"]["large"], 0);
}

TEST_F(Cli, WhatTheGpuHasNoArithmeticForIsLeftOutByNameBeforeAnythingIsTried) {
  int asked_for = -1;
  const auto two_gpus = [&asked_for](Captured& cli) {
    cli.driver = {.usable = true, .devices = 2, .reason = {}, .capabilities = {90, 80}};
    BackendEntry cuda;
    cuda.name = "cuda";
    cuda.open = [](const OpenRequest&) { return std::unique_ptr<Backend>(); };
    cuda.precisions = [&asked_for](int capability) {
      asked_for = capability;
      return std::vector<std::string>{"f32"};
    };
    cli.more_backends = {cuda};
  };
  Captured hopper, ampere, forced;
  for (Captured* cli : {&hopper, &ampere, &forced}) two_gpus(*cli);

  EXPECT_EQ(hopper.run("--device cuda:0 --dry-run"), 0);
  EXPECT_EQ(asked_for, 90);
  EXPECT_THAT(hopper.err.str(), Not(HasSubstr("f8_hybrid")));
  EXPECT_EQ(ampere.run("--device cuda:1 --dry-run"), 0);
  EXPECT_EQ(asked_for, 80);
  EXPECT_THAT(ampere.err.str(),
              HasSubstr("note: f8_hybrid, f8_hybrid_fast need compute capability 8.9; mxfp8, nvfp4 need compute "
                        "capability 10.0; this device has 8.0; their cases are left out\n"));
  EXPECT_EQ(forced.run("list --device cuda:1 --precision f32"), 0);
  EXPECT_THAT(forced.err.str(), HasSubstr("cases that --precision asks for will be unsupported"));
}

TEST_F(Cli, ADryRunShowsThePlanAndRunsNothing) {
  cli_.script = "kill@first.gemm";  // would end this process
  EXPECT_EQ(cli_.run("--dry-run --isolate off --out here"), 0);
  EXPECT_THAT(cli_.out.str(),
              AllOf(HasSubstr("sim/first/n=8/f32/x1"), HasSubstr("6 cases, about"), HasSubstr("nothing was run")));
  EXPECT_TRUE(nothing_written());
}

TEST_F(Cli, AnUnwritableOutputIsKnownBeforeTheFirstCase) {
  std::filesystem::create_directory("taken");
  for (const Words& flags : std::vector<Words>{"--json taken", "--json missing/report.json", "--out /dev/null/x"}) {
    Captured cli;
    cli.script = "kill@first.gemm";  // fails if a case starts
    const Words words = "--isolate off --tier smoke" + flags;
    EXPECT_EQ(cli.run(words), 2) << flags[1];
    EXPECT_THAT(cli.err.str(), HasSubstr(flags[0]));
  }
}

TEST_F(Cli, ReportsGoWhereTheyWereAsked) {
  EXPECT_EQ(cli_.run("--isolate off --tier smoke --filter last --out a/b --json c.json"), 0);
  EXPECT_EQ(schema_errors(read_json_file("a/b/report.json")), "");
  EXPECT_EQ(schema_errors(read_json_file("c.json")), "");
  EXPECT_THAT(cli_.out.str(), HasSubstr("report   a/b/report.json"));
  EXPECT_EQ(Captured().run("--isolate off --tier smoke --filter last"), 0);
  Captured third;  // within the same second
  EXPECT_EQ(third.run("--isolate off --tier smoke --filter last"), 0);
  const auto folders =
      std::distance(std::filesystem::directory_iterator("gpubench-out"), std::filesystem::directory_iterator());
  EXPECT_EQ(folders, 2);
}

TEST_F(Cli, AReportThatIsLostAtTheEndExitsThree) {
  cli_.variables["TMPDIR"] = ".";
  EXPECT_EQ(cli_.run("--isolate off --tier smoke --filter last --json /dev/full"), 3);
  EXPECT_THAT(cli_.err.str(), HasSubstr("the report is lost: /dev/full: cannot write"));
  Captured broken;
  broken.variables["TMPDIR"] = ".";
  broken.out.setstate(std::ios::badbit);
  EXPECT_EQ(broken.run("--isolate off --tier smoke --filter last --json -"), 3);
}

TEST_F(Cli, AnInterruptedRunWritesAPartialReportWithEveryCase) {
  for (const auto& [signal, code] : {std::pair{2, 130}, std::pair{15, 143}}) {
    const ChildResult cli = exits(code, ran("--isolate off --tier smoke --json -", {.stop = signal}));
    const Json report = parse_json(cli.out, "stdout");
    EXPECT_EQ(schema_errors(report), "");
    EXPECT_EQ(report["context"]["gpubench"]["complete"], false);
    EXPECT_EQ(report["gpubench"]["cases"].size(), 6U);
    EXPECT_THAT(cli.err, HasSubstr("VERDICT  INCOMPLETE"));
  }
}

TEST_F(Cli, ColourAppearsOnlyWhereWanted) {
  const Words words("--isolate off --tier smoke --filter last --json x.json --progress none --force");
  EXPECT_THAT(exits(0, ran(words, {.out_is_terminal = true})).out, HasSubstr("\x1b["));
  const ChildResult no_color = exits(0, ran(words, {.variables = {{"NO_COLOR", "1"}}, .out_is_terminal = true}));
  EXPECT_THAT(no_color.out, AllOf(Not(HasSubstr("\x1b")), HasSubstr("PASS")));
  EXPECT_THAT(exits(0, ran(words)).out, Not(HasSubstr("\x1b")));
}

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

// Both streams together, as in a CI log.
TEST_F(Cli, WithoutATerminalEachCaseIsListedOnceWhateverTheProgress) {
  for (const char* progress : {"auto", "lines", "none"}) {
    const ChildResult cli =
        exits(0, ran({"--isolate", "off", "--tier", "smoke", "--json", "x.json", "--progress", progress, "--force"}));
    EXPECT_EQ(times_in(cli.out + cli.err, "\nPASS "), 6) << progress;
    EXPECT_EQ(times_in(cli.out, "  last f32  tiny"), 1) << progress;
    EXPECT_EQ(times_in(cli.err, "last f32"), 0) << progress;
    EXPECT_THAT(cli.err, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("VERDICT"))));
    EXPECT_THAT(cli.out, AllOf(HasSubstr("VERDICT  PASS"), HasSubstr("err/bound")));
  }
}

TEST_F(Cli, AnInterruptedRunHasALineForEachSuiteAndNoneForCasesThatItDidNotReach) {
  cli_.stop = 2;
  EXPECT_EQ(cli_.run("--isolate off --tier smoke --json x.json"), 130);
  EXPECT_THAT(cli_.out.str(), AllOf(Not(HasSubstr("sim/")), HasSubstr("\nsim "),
                                    HasSubstr("VERDICT  INCOMPLETE  6 skipped of 6 cases")));
}

TEST_F(Cli, QuietShowsTheSummaryAlone) {
  EXPECT_EQ(cli_.run("-q --isolate off --tier smoke --filter last --json x.json"), 0);
  EXPECT_THAT(cli_.out.str(), AllOf(StartsWith("suite "), Not(HasSubstr("sim/last"))));
  EXPECT_THAT(cli_.err.str(), Not(HasSubstr("sim/last")));
}

TEST_F(Cli, ListShowsCasesSuitesAndOneCaseInDetail) {
  EXPECT_EQ(cli_.run("list"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("sim/packed/n=8/f32/x1"));
  EXPECT_THAT(cli_.err.str(), HasSubstr("suite/workload/sizes/precision[/mode...]/xRANKS"));
  EXPECT_THAT(exits(0, ran("list suites")).out, HasSubstr("tiny cases for tests"));
  const ChildResult detail = exits(0, ran("list sim/packed/n=8/f32/x1"));
  // 2 * 8 * 8 * 8 = 1024 FLOP; five tensors of 8 * 8 * 4 = 256 bytes
  for (const char* part : {"packed.copy", "packed.gemm", "set-up", "1.02 kFLOP", "f32", "[8, 8]", "256", "rerun",
                           "exact, bitwise", "64 elements", "Rule G: 2 u sqrt(8) max(|C| + Q, 2 S), u = 2^-24",
                           "gpubench run --filter '^sim/packed/n=8/f32/x1$'"})
    EXPECT_THAT(detail.out, HasSubstr(part));
  EXPECT_EQ(Captured().run("list packed --tier smoke --batch 3"), 2);  // no sim case has a batch axis
  const ChildResult part = exits(0, ran("list pack"));
  EXPECT_EQ(part.out, detail.out);
}

TEST_F(Cli, ListAsJsonIsOneDocument) {
  EXPECT_EQ(cli_.run("list --format json"), 0);
  EXPECT_EQ(parse_json(cli_.out.str(), "stdout")["cases"].size(), 6U);
  const Json json = parse_json(exits(0, ran("list chain --format json")).out, "stdout");
  EXPECT_EQ(json["ops"].size(), 3U);
  EXPECT_EQ(json["ops"][0]["flop"], 1024.0);
  EXPECT_EQ(json["ops"][0]["outputs"].size(), 1U);
  EXPECT_EQ(json["ops"][0]["outputs"][0]["judged"], "64 elements");
  EXPECT_EQ(json["ops"][0]["outputs"][0]["bound"], "Rule G: 2 u sqrt(8) max(|C| + Q, 2 S), u = 2^-24");
  EXPECT_EQ(json["tensors"][0]["bytes"], 256);
  const ChildResult suites = exits(0, ran("list suites --format json"));
  EXPECT_EQ(parse_json(suites.out, "stdout")["suites"][0]["cases"]["smoke"], 6);
}

TEST_F(Cli, DoctorExitsZeroEvenWhereTheBackendDoesNotStart) {
  EXPECT_EQ(cli_.run("doctor"), 0);  // the tests' child program does not exist
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("D103"), HasSubstr("D101"), HasSubstr("memory")));
}

TEST_F(Cli, DoctorTellsLibrariesAndEveryGpu) {
  cli_.driver = {};
  cli_.driver.usable = true;
  cli_.driver.devices = 1;
  cli_.driver.cuda_version = 13000;
  cli_.gpus = {};
  cli_.gpus.driver_version = "580.65.06";
  GpuFacts gpu;
  gpu.name = "NVIDIA H200\x1b[2J";
  gpu.memory_bytes = 150000000000;
  gpu.now.sm_mhz = 345;
  gpu.max_sm_mhz = 1980;
  gpu.now.power_w = 75.4;
  gpu.power_limit_w = 700.0;
  gpu.now.temperature_c = 31;
  gpu.now.reasons = 0x41;
  gpu.ecc = true;
  gpu.mig = false;
  gpu.nvlinks = gpu.nvlinks_up = 18;
  gpu.pcie_generation = 1;
  gpu.pcie_generation_max = 5;
  gpu.pcie_width = gpu.pcie_width_max = 16;
  cli_.gpus.gpus = {gpu};
  BackendEntry cuda;
  cuda.name = "cuda";
  cuda.libraries = [] { return std::vector<ModuleReport>{{"cudnn", "9.19.0", "/somewhere/libcudnn.so.9"}}; };
  cli_.more_backends = {cuda};
  EXPECT_EQ(cli_.run("doctor"), 0);
  const std::string text = cli_.out.str();
  EXPECT_THAT(text, HasSubstr("ok         cudnn 9.19.0 from /somewhere/libcudnn.so.9\n"));
  EXPECT_THAT(text, HasSubstr("warn D110  gpu 0: throttled by heat now (31 C)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "gpu  name                memory    SM MHz  mem MHz       W   C  ECC  MIG  NVLink  PCIe            held "
          "back by\n"
          "  0  NVIDIA H200\\x1b[2J  150 GB  345/1980        -  75/700  31  on   off   18/18  1 x16 of 5 x16  idle, "
          "hw_thermal_slowdown\n"));
  EXPECT_THAT(text, HasSubstr("will use the GPU\n"));
}

TEST_F(Cli, DoctorTellsAModuleThatCannotBeLoaded) {
  BackendEntry cuda;
  cuda.name = "cuda";
  cuda.libraries = []() -> std::vector<ModuleReport> { throw BackendError("libcudnn.so.9: cannot open it"); };
  cli_.more_backends = {cuda};
  EXPECT_EQ(cli_.run("doctor"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("warn D107  libcudnn.so.9: cannot open it\n"));
}

TEST_F(Cli, AWorkerThatCannotBeStartedExitsThree) {
  EXPECT_EQ(cli_.run("--tier smoke --json -"), 3);
  EXPECT_THAT(cli_.err.str(), HasSubstr("/nonexistent/gpubench"));
}

TEST_F(Cli, HelpAndVersionExitZero) {
  EXPECT_EQ(cli_.run("--help"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("gpubench VERB --help"));
  EXPECT_EQ(cli_.run("--help-all"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("--suite NAME,..."));
  for (const char* word : {"noisy", "severe", "downgraded", "suite/workload/sizes/precision"})
    EXPECT_THAT(cli_.out.str(), HasSubstr(word));
  EXPECT_THAT(exits(0, ran("--version")).out, StartsWith("gpubench "));
}

TEST_F(Cli, TheVersionAndTheReportNameTheRevisionWhereItIsKnown) {
  cli_.revision = "30d45bb0a1b2-dirty";
  EXPECT_EQ(run_to_stdout("--filter last"), 0);
  EXPECT_EQ(document()["context"]["gpubench"]["build"]["revision"], "30d45bb0a1b2-dirty");
  EXPECT_EQ(schema_errors(document()), "");
  EXPECT_THAT(exits(0, ran("--version", {.revision = "30d45bb0a1b2-dirty"})).out,
              MatchesRegex("gpubench [0-9.]+, 30d45bb0a1b2-dirty, .*\n"));
  EXPECT_THAT(exits(0, ran("--version")).out, MatchesRegex("gpubench [0-9.]+, (clang|g).*\n"));
}

}  // namespace
}  // namespace gpubench

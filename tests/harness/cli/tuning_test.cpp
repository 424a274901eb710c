// The tuning cache on the sim backend, which offers three implementations of each op; the script names the fastest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/report/report_schema.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Tuning : public ScratchFolder {};

TEST_F(Tuning, WhatWasTimedOnceIsRememberedByLaterRuns) {
  const auto run = [](const std::string& script, const Words& more) {
    Captured cli;
    cli.script = script;
    cli.variables = {{"XDG_CACHE_HOME", std::filesystem::current_path() / "cache"}};
    const Words words = "--isolate off --tier smoke --json - --detail full --filter sim/(first|chain)" + more;
    EXPECT_EQ(cli.run(words), 0) << cli.err.str();
    const Json report = parse_json(cli.out.str(), "stdout");
    EXPECT_EQ(schema_errors(report), "");
    const Json& first = report["gpubench"]["cases"][0];
    const Json& op = report["gpubench"]["cases"][1]["parity"]["ops"][0];
    EXPECT_EQ(op["implementation"], first["implementation"]);
    EXPECT_EQ(op["choice"], first["choice"]);
    return first["implementation"].get<std::string>() + " " + first["choice"].get<std::string>();
  };
  EXPECT_EQ(run("fastest=b", {}), "sim:b timed");
  EXPECT_EQ(run("fastest=a", {}), "sim:b remembered");
  EXPECT_EQ(run("fastest=a", "--tuning-cache off"), "sim:a timed");
  EXPECT_EQ(run("fastest=c", "--deterministic"), "sim:c timed");
  EXPECT_EQ(run("fastest=a", "--deterministic"), "sim:c remembered");
  EXPECT_EQ(run("fastest=a", "--tuning-cache elsewhere"), "sim:a timed");
  EXPECT_EQ(run("fastest=b", "--tuning-cache elsewhere"), "sim:a remembered");
  EXPECT_TRUE(std::filesystem::is_directory("cache/gpubench"));
  EXPECT_TRUE(std::filesystem::is_directory("elsewhere"));
}

TEST_F(Tuning, APinWinsOverWhatIsRemembered) {
  EXPECT_EQ(Captured{.script = "fastest=b"}.run("--isolate off --tuning-cache cache --json first.json --filter first"),
            0);
  EXPECT_EQ(Captured{.script = "fastest=a"}.run("--isolate off --tuning-cache off --json other.json --filter first"),
            0);

  const ChildResult pinned = exits(
      0, ran("--isolate off --tuning-cache cache --pin other.json --json - --filter first", {.script = "fastest=c"}));
  const Json report = parse_json(pinned.out, "stdout");
  EXPECT_EQ(report["gpubench"]["cases"][0]["implementation"], "sim:a");
  EXPECT_EQ(report["gpubench"]["cases"][0]["choice"], "pinned");
}

// An op of 100 us: a sample of at least 200 us (smoke) has 2 runs, one of 500 us (quick) has 8.
TEST_F(Tuning, SamplesHaveAsManyRunsAsThoseOfTheReportThatIsNamed) {
  const auto batch = [](const Words& flags) {
    Captured run{.script = "clock=100000"};
    EXPECT_EQ(run.run(flags + "--isolate off --json - --filter first --tier smoke"), 0) << run.err.str();
    const Json report = parse_json(run.out.str(), "stdout");
    std::ofstream(run.script + ".json") << report.dump();
    return report["gpubench"]["cases"][0]["batch"].get<int>();
  };
  EXPECT_EQ(batch("--preset quick"), 8);
  EXPECT_EQ(batch("--preset smoke"), 2);
  EXPECT_EQ(batch("--preset quick --like clock=100000.json"), 2);
}

TEST_F(Tuning, AReportToBeLikeWithAnImpossibleNumberOfRunsIsRefused) {
  Captured first;
  EXPECT_EQ(first.run("--isolate off --json first.json --filter first --tier smoke"), 0);
  Json report = read_json_file("first.json");
  report["gpubench"]["cases"][0]["batch"] = 1 << 20;
  std::ofstream("many.json") << report.dump();
  for (const char* file : {"many.json", "nowhere.json"}) {
    const ChildResult refused = exits(2, ran({"--isolate", "off", "--like", file}));
    EXPECT_NE(refused.err.find("--like: " + std::string(file)), std::string::npos) << refused.err;
  }
}

TEST_F(Tuning, ACacheThatCannotBeReadIsOneWarningAndNoMore) {
  EXPECT_EQ(Captured{.script = "fastest=b"}.run("--isolate off --tuning-cache cache --tier smoke"), 0);
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator("cache")) file = entry.path();
  std::ofstream(file) << "\x1b[2J{";

  const ChildResult spoilt =
      exits(0, ran("--isolate off --tuning-cache cache --tier smoke --json -", {.script = "fastest=a"}));
  EXPECT_EQ(parse_json(spoilt.out, "stdout")["gpubench"]["cases"][0]["choice"], "timed");
  EXPECT_THAT(spoilt.err, HasSubstr("note: choices of earlier runs are ignored: cache/simulated-device-"));
  EXPECT_EQ(spoilt.err.find("ignored"), spoilt.err.rfind("ignored"));
  EXPECT_THAT(spoilt.err, Not(HasSubstr("\x1b")));
  const ChildResult mended =
      exits(0, ran("--isolate off --tuning-cache cache --tier smoke -v", {.script = "fastest=b"}));
  EXPECT_THAT(mended.out, HasSubstr("by sim:a (remembered)\n"));
  EXPECT_THAT(mended.err, Not(HasSubstr("ignored")));
}

TEST_F(Tuning, AnImplementationThatFailedIsNotRemembered) {
  for (const char* script : {"fastest=b;wrong_element@first.gemm", "fastest=b;out_of_memory@first.gemm"}) {
    Captured failing;
    failing.script = script;
    EXPECT_NE(failing.run("--isolate off --tuning-cache cache --filter first"), 0);
    EXPECT_THAT(failing.out.str(), HasSubstr("gpubench run --tuning-cache cache --filter '^sim/first/"));
    EXPECT_FALSE(std::filesystem::exists("cache"));
  }
  EXPECT_EQ(Captured{.script = "fastest=b"}.run("--isolate off --tuning-cache cache --filter first --check off"), 0);
  EXPECT_FALSE(std::filesystem::exists("cache"));
}

}  // namespace
}  // namespace gpubench

// gpubench-gbench: Google Benchmark's flags and output with gpubench's rounds and verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "harness/measure/statistics.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"
#include "tests/harness/cli/captured.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ChildResult gbench(const Words& words, const std::string& script = "") {
  return run_child(Words{paths::gbench_sim_program} + "--tier smoke --tuning-cache off" + words,
                   {{"GPUBENCH_SIM_SCRIPT", script}});
}

// The library appends settings of the case to its name.
std::string id_of(const Json& entry) {
  const std::string name = entry["run_name"];
  return name.substr(0, name.find("/iterations:"));
}

// Times in us by case, in the order of the repetitions.
std::map<std::string, std::vector<double>> rounds_of(const Json& document) {
  std::map<std::string, std::vector<double>> rounds;
  for (const Json& entry : document["benchmarks"]) {
    if (entry["run_type"] == "iteration") rounds[id_of(entry)].push_back(entry["real_time"]);
  }
  return rounds;
}

TEST(Gbench, ListsEveryPlannedCaseUnderItsIdAndRunsNone) {
  const ChildResult result = exits(0, gbench("--benchmark_list_tests", "kill@first.gemm"));
  for (const char* name : {"first", "chain", "update", "clip", "packed", "last"})
    EXPECT_THAT(result.out, HasSubstr(std::string("sim/") + name + "/n=8/f32/x1/iterations:1/repeats:3/manual_time\n"));
}

// The fake clock gives both programs the same times, by the costs of ops.
TEST(Gbench, ARepetitionIsARoundOfTheEngine) {
  const ChildResult result = gbench("--benchmark_format=json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto seen = rounds_of(parse_json(result.out, "stdout"));
  Captured engine;
  ASSERT_EQ(engine.run("--isolate off --tier smoke --json - --tuning-cache off"), 0);
  const Json report = parse_json(engine.out.str(), "report");

  ASSERT_EQ(seen.size(), 6U);
  for (const Json& one : report["gpubench"]["cases"]) {
    const CaseRecord record = record_from_json({one, "report"});
    const std::vector<double>& times = seen.at(record.id);
    ASSERT_EQ(times.size(), record.rounds.size()) << record.id;
    for (std::size_t r = 0; r < times.size(); ++r) {
      const double us = median(record.rounds[r].times.device_ns) / static_cast<double>(record.batch) / 1000.0;
      EXPECT_NEAR(times[r], us, 1e-6 * us) << record.id;  // the library converts to seconds
    }
  }
}

TEST(Gbench, AggregatesAreOverRoundsAndRatesComeWithThem) {
  const ChildResult result = gbench("--benchmark_format=json --benchmark_filter=sim/first", "clock=1000");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json document = parse_json(result.out, "stdout");
  int medians = 0;
  for (const Json& entry : document["benchmarks"]) {
    EXPECT_EQ(id_of(entry), "sim/first/n=8/f32/x1");
    if (entry["run_type"] == "iteration") {
      EXPECT_EQ(entry["time_unit"], "us");
      EXPECT_NEAR(entry["real_time"].get<double>(), 1.0, 1e-6);
      EXPECT_NEAR(entry["flop_per_second"].get<double>(), 1.024e9, 1e4);  // 2 * 8 * 8 * 8 FLOP in 1000 ns
    } else if (entry["aggregate_name"] == "median") {
      ++medians;
      EXPECT_NEAR(entry["real_time"].get<double>(), 1.0, 1e-6);
    }
  }
  EXPECT_EQ(medians, 1);
}

TEST(Gbench, TheLibrarysRepetitionsAreRounds) {
  const ChildResult result = gbench("--benchmark_format=json --benchmark_filter=sim/last --benchmark_repetitions=7");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto seen = rounds_of(parse_json(result.out, "stdout"));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen.at("sim/last/n=8/f32/x1").size(), 7U);
}

// Also if only the recheck after the last round finds it.
TEST(Gbench, ACaseThatDoesNotPassIsAnErrorInEveryRepetitionAndHasNoTime) {
  for (const char* fault : {"wrong_element@first.gemm", "drop/sequence@chain.down"}) {
    const std::string name = std::string(fault).find("first") == std::string::npos ? "chain" : "first";
    const ChildResult result = exits(1, gbench("--benchmark_format=json", fault));
    const Json document = parse_json(result.out, "stdout");
    int errors = 0;
    for (const Json& entry : document["benchmarks"]) {
      if (id_of(entry) != "sim/" + name + "/n=8/f32/x1") continue;
      EXPECT_EQ(entry.value("error_occurred", false), true) << entry.dump();
      EXPECT_THAT(entry["error_message"], HasSubstr("fail: "));
      EXPECT_EQ(entry.value("real_time", 0.0), 0.0);
      ++errors;
    }
    EXPECT_GE(errors, 1) << result.out;
  }
}

class GbenchFiles : public ScratchFolder {};

TEST_F(GbenchFiles, BenchmarkOutIsWrittenBesideTheConsole) {
  EXPECT_THAT(exits(0, gbench("--benchmark_filter=sim/last --benchmark_out=out.json")).out,
              HasSubstr("sim/last/n=8/f32/x1"));
  EXPECT_EQ(rounds_of(read_json_file("out.json")).at("sim/last/n=8/f32/x1").size(), 3U);
}

// Its JSON contains the host's name and the program's path.
TEST_F(GbenchFiles, AnonymousItNamesNeitherHostNorPath) {
  char host[256];
  ASSERT_EQ(::gethostname(host, sizeof host), 0);
  const ChildResult named = gbench("--benchmark_format=json --benchmark_filter=sim/last --benchmark_out=named.json");
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(parse_json(named.out, "stdout")["context"]["host_name"], host);
  const ChildResult hidden = gbench(
      "--benchmark_format=json --benchmark_filter=sim/last --benchmark_out=hidden.json --anonymize --anonymize-key "
      "key");
  ASSERT_EQ(hidden.exit_code, 0) << hidden.err;
  for (const Json& document : {parse_json(hidden.out, "stdout"), read_json_file("hidden.json")}) {
    EXPECT_THAT(document["context"]["host_name"].get<std::string>(), StartsWith("host-"));
    EXPECT_EQ(document["context"]["executable"], "gpubench");
  }
}

TEST(Gbench, WhatItCannotDoIsAUsageError) {
  EXPECT_EQ(gbench("--json x.json").exit_code, 2);
  EXPECT_EQ(gbench("--dry-run").exit_code, 2);
  EXPECT_EQ(gbench("--no-such-flag").exit_code, 2);
  EXPECT_EQ(gbench("--benchmark_repetitions=0").exit_code, 2);
  EXPECT_EQ(gbench("--benchmark_repetitions=many").exit_code, 2);
  EXPECT_EQ(gbench("--suite sin").exit_code, 2);
}

TEST(Gbench, NothingThatMatchesIsNothingThatRan) { EXPECT_EQ(gbench("--benchmark_filter=no_such_case").exit_code, 5); }

}  // namespace
}  // namespace gpubench

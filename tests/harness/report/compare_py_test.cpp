// Google Benchmark's compare.py with its real dependencies on exports. It is not in this tree;
// tests/harness/report/CMakeLists.txt looks for it and skips the test without it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "harness/measure/statistics.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/shell.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

std::string compare_py() {
  const char* variable = std::getenv("GPUBENCH_COMPARE_PY");
  return variable != nullptr ? variable : paths::compare_py;
}

// Twelve rounds of three samples around `ns`; the U test needs nine.
CaseRecord timed(const std::string& workload, double ns) {
  CaseRecord record = holding_record();
  record.c.workload = workload;
  record.id = record.c.id();
  record.rounds.clear();
  for (int r = 0; r < 12; ++r) {
    const double one = ns * (1.0 + 0.001 * r) * static_cast<double>(record.batch);
    RoundRecord round;
    round.times.device_ns = round.times.wall_ns = {one, one, one};
    record.rounds.push_back(round);
  }
  record.summary = summarize(record.rounds, record.batch);
  return record;
}

class ComparePy : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    if (compare_py().empty() || !std::filesystem::exists(compare_py()))
      GTEST_SKIP() << "compare.py was not found; GPUBENCH_COMPARE_PY names one";
    if (shell(python_ + " -c 'import numpy, scipy.stats'").status != 0)
      GTEST_SKIP() << "compare.py needs python3 with numpy and scipy";
  }

  std::string file(const std::string& name, const std::vector<CaseRecord>& cases, ExportFormat format) {
    Report report = holding_report();
    report.cases = cases;
    write(name, exported(report, format));
    return name;
  }

  // The output of compare.py for two files, by case.
  Json compared(const std::string& before, const std::string& after) {
    const ShellResult result =
        shell(python_ + " '" + compare_py() + "' --no-color -d dump.json benchmarks '" + before + "' '" + after + "'");
    EXPECT_EQ(result.status, 0) << result.out;
    return read_json_file("dump.json");
  }

  std::string python_ = std::filesystem::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
};

const Json& named(const Json& dump, std::string_view name) {
  for (const Json& entry : dump) {
    if (entry["name"].get_ref<const std::string&>() == name) return entry;
  }
  throw std::runtime_error("no " + std::string(name) + " in " + dump.dump());
}

TEST_F(ComparePy, SeesTheSameTimesAndTheSameDifferences) {
  const std::string before = file("before.json", {timed("same", 2000), timed("slower", 2000)}, ExportFormat::gbench);
  const std::string after = file("after.json", {timed("same", 2000), timed("slower", 2200)}, ExportFormat::gbench);

  const Json dump = compared(before, after);

  const Json& same = named(dump, timed("same", 1).id);
  const Json& slower = named(dump, timed("slower", 1).id);
  EXPECT_EQ(same["time_unit"], "us");
  EXPECT_EQ(same["measurements"].size(), 12U);
  EXPECT_EQ(same["measurements"][0]["real_time"], 2.0);
  EXPECT_EQ(same["measurements"][0]["time"], 0.0);
  EXPECT_NEAR(slower["measurements"][0]["time"].get<double>(), 0.1, 1e-12);
  EXPECT_GT(same["utest"]["time_pvalue"].get<double>(), 0.9);
  EXPECT_LT(slower["utest"]["time_pvalue"].get<double>(), 0.001);
}

TEST_F(ComparePy, TakesTheSummaryToo) {
  const std::string before = file("before.json", {timed("slower", 2000)}, ExportFormat::gbench_summary);
  const std::string after = file("after.json", {timed("slower", 2200)}, ExportFormat::gbench_summary);

  const Json dump = compared(before, after);

  const Json& median = named(dump, timed("slower", 1).id + "_median");
  EXPECT_NEAR(median["measurements"][0]["time"].get<double>(), 0.1, 1e-12);
}

// A failed case as 0 would count as infinitely fast, and spoil the mean.
TEST_F(ComparePy, DoesNotSeeACaseThatFailed) {
  CaseRecord failed = timed("fails", 2000);
  failed.verdict = Verdict::fail;
  failed.reason = "wrong";
  const std::string before = file("before.json", {timed("same", 2000), timed("fails", 2000)}, ExportFormat::gbench);
  const std::string after = file("after.json", {timed("same", 2000), failed}, ExportFormat::gbench);

  const Json dump = compared(before, after);

  EXPECT_EQ(dump.dump().find("fails"), std::string::npos) << dump.dump();
  EXPECT_EQ(named(dump, timed("same", 1).id)["measurements"][0]["time"], 0.0);
}

}  // namespace
}  // namespace gpubench

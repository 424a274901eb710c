// Implementations that end, change or fill their process (tests/harness/run/cheats.c) cost only their own case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;

struct Row {
  const char* cheat;
  const char* status;
  const char* words;
};

class CheatProgram : public ScratchFolder, public ::testing::WithParamInterface<Row> {};

class CheatLeftovers : public ScratchFolder {};

TEST_P(CheatProgram, CostsItsOwnCaseAlone) {
  const Row& row = GetParam();
  ::setenv("GPUBENCH_CHEAT", row.cheat, 1);
  const ChildResult result = run_child({paths::program, "run", "--device", "cpu", "--tier", "smoke", "--tuning-cache",
                                        "off", "--deadline", "3", "--impl", paths::cheats, "--versus", "reference",
                                        "--filter", "gemm/matmul/m=35.*/f32/", "--json", "-"});
  ::unsetenv("GPUBENCH_CHEAT");
  const Json cases = parse_json(result.out, "stdout")["gpubench"]["cases"];
  ASSERT_EQ(cases.size(), 2U) << result.err;
  for (const Json& one : cases) {
    if (!one.contains("contender")) {
      EXPECT_EQ(one["status"], "pass") << "the reference is none of its business";
      continue;
    }
    const std::string reason = one.value("reason", "");
    std::cout << "| " << row.cheat << " | " << one["status"].get<std::string>() << " | " << reason << " |\n";
    EXPECT_EQ(one["status"], row.status) << result.err;
    EXPECT_THAT(reason, HasSubstr(row.words));
  }
}

TEST_F(CheatLeftovers, AProcessThatItLeavesBehindEndsWithTheRun) {
  ::setenv("GPUBENCH_CHEAT", "forks", 1);
  const ChildResult result =
      run_child({paths::program, "run", "--device", "cpu", "--tier", "smoke", "--tuning-cache", "off", "--impl",
                 paths::cheats, "--filter", "gemm/matmul/m=35.*/f32/", "--json", "-"});
  ::unsetenv("GPUBENCH_CHEAT");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const int left = std::stoi(content_of("left.pid"));
  EXPECT_EQ(::kill(left, 0), -1) << "process " << left << " is still there";
}

INSTANTIATE_TEST_SUITE_P(
    Table, CheatProgram,
    ::testing::Values(Row{"crashes", "error", "worker ended by signal 11 (Segmentation fault) while 'check'"},
                      Row{"exits", "error", "worker exited with status 0 while 'check'"},
                      Row{"hangs", "error", "no answer for 3 s"}, Row{"eats_memory", "error", "no memory for block"},
                      Row{"prints", "pass", ""}, Row{"clock", "error", "the worker's c"}),
    [](const auto& row) { return row.param.cheat; });

}  // namespace
}  // namespace gpubench

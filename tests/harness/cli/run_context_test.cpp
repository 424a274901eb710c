#include "harness/cli/run_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/core/error.h"
#include "harness/report/json.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;

class TakingTurns : public ScratchFolder {
 protected:
  int run(const std::string& turns, Words more = {"--filter", "/first/"}) {
    cli_.in.str(turns);
    return cli_.run("--suite sim --tier smoke --isolate off --turns --json r.json" + more);
  }
  std::vector<Json> answers() const {
    std::vector<Json> all;
    std::istringstream lines(cli_.out.str());
    for (std::string line; std::getline(lines, line);) all.push_back(parse_json(line, "answer"));
    return all;
  }
  Captured cli_;
};

TEST_F(TakingTurns, EachLineIsAnsweredAndTheEndOfInputEndsTheCase) {
  EXPECT_EQ(run("0.001\n0.02\n0.001\n"), 0);
  ASSERT_EQ(answers().size(), 3U);
  const Json report = read_json_file("r.json");
  const Json& record = report["gpubench"]["cases"][0];
  EXPECT_EQ(record["status"], "pass");
  std::size_t rounds = 0;
  for (const Json& answer : answers()) {
    EXPECT_EQ(answer["copies"], record["copies"]);
    EXPECT_GT(answer["median_ns"].get<double>(), 0.0);
    EXPECT_GE(answer["rounds"].get<std::size_t>(), 1U);
    rounds += answer["rounds"].get<std::size_t>();
  }
  EXPECT_EQ(rounds, record["rounds"].size());  // as requested, whatever the preset
}

TEST_F(TakingTurns, ACaseThatFailsItsCheckHasNoTurn) {
  cli_.script = "wrong_element@first.gemm";
  EXPECT_EQ(run("0.001\n"), 1);
  EXPECT_TRUE(answers().empty());
}

TEST_F(TakingTurns, WhatIsNoLengthIsAUsageError) {
  for (const char* turn : {"0\n", "-1\n", "nan\n", "1e9\n", "now\n", "\n"}) {
    std::istringstream in(turn);
    std::ostringstream out;
    Turns turns(in, out);
    EXPECT_THROW((void)turns(CaseRecord{}), UsageError) << turn;
  }
}

TEST_F(TakingTurns, ItIsForOneCaseInThisProcess) {
  EXPECT_EQ(run("", {}), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--turns takes one case, 6 match"));
  EXPECT_EQ(run("", "--isolate on"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("add --isolate off"));
  EXPECT_EQ(run("", "--json -"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--json FILE"));
}

}  // namespace
}  // namespace gpubench

// A run in processes, one of whose ranks fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class RankProgram : public ScratchFolder {
 protected:
  // Four collectives on two ranks, the second of which fails; returns its reason.
  static std::string reason_after(const std::string& fault) {
    const Json report = parse_json(
        exits(3, run_child({paths::faulty_ranks_program, "--suite", "collectives", "--tier", "smoke", "--filter",
                            "all_reduce/|all_gather|broadcast", "--tuning-cache", "off", "--json", "-"},
                           {{"GPUBENCH_RANK_FAULT", fault}}))
            .out,
        "stdout");
    EXPECT_EQ(schema_errors(report), "");
    EXPECT_EQ(report["gpubench"]["totals"]["pass"], 3) << "the others have to finish";
    EXPECT_EQ(report["gpubench"]["totals"]["error"], 1);
    for (const Json& one : report["gpubench"]["cases"]) {
      if (one["status"] == "error") return one["id"].get<std::string>() + ": " + one["reason"].get<std::string>();
    }
    return "";
  }
};

TEST_F(RankProgram, ARankThatThrowsIsNamedAndTheOthersFinish) {
  EXPECT_THAT(reason_after("throw"), HasSubstr("all_reduce/bytes=65536/bf16/x2: rank 1: the link is down (in 'y')"));
}

TEST_F(RankProgram, ARankWithoutMemoryIsNamedAndTheOthersFinish) {
  EXPECT_THAT(reason_after("memory"), HasSubstr("rank 1: out of memory (in 'y')"));
}

// Waits for the limit of 15 s.
TEST_F(RankProgram, ARankThatHangsIsNamedWithWhoWaitedAndTheOthersFinish) {
  EXPECT_THAT(reason_after("hang"),
              AllOf(HasSubstr("rank 1 has made no progress for 15 s, last in 'y'"), HasSubstr("rank 0 was waiting")));
}

TEST_F(RankProgram, AKilledProcessCostsOneCase) { EXPECT_THAT(reason_after("kill"), HasSubstr("signal 9")); }

}  // namespace
}  // namespace gpubench

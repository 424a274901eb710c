#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace tune_batch_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TuneBatch : public ScratchFolder {
 protected:
  static ChildResult tune(const Words& words) {
    return run_child(Words{paths::program} + "tune-batch --device cpu --tuning-cache off" + words);
  }
  static ChildResult tune_tiny(const Words& more) {
    return tune("gemm/matmul/m=1,n=1,k=1 --precision f32 --tier smoke" + more);
  }
};

TEST_F(TuneBatch, TriesTheBatchesThatAreAskedForAndChartsThem) {
  EXPECT_THAT(exits(0, tune_tiny("--batch 64,1,8 --json t.json --svg t.svg -o t.html")).out,
              AllOf(HasSubstr("gemm/matmul/n=1,k=1 f32, batch m\n"), HasSubstr("best throughput    ")));
  const Json curve = parse_json(content_of("t.json"), "t.json")["curves"][0];
  ASSERT_EQ(curve["trials"].size(), 3);
  for (int i = 0; i < 3; ++i) {
    const Json& trial = curve["trials"][static_cast<std::size_t>(i)];
    EXPECT_EQ(trial["batch"], i == 0 ? 1 : i == 1 ? 8 : 64);
    EXPECT_EQ(trial["status"], "pass");
    EXPECT_GT(trial["items_per_s"].get<double>(), 0.0);
  }
  EXPECT_EQ(curve["largest_that_ran"], 64);
  EXPECT_LE(curve["within_5_percent_from"].get<int>(), curve["best"].get<int>());
  EXPECT_THAT(content_of("t.svg"), AllOf(HasSubstr("<svg"), HasSubstr("matmul against batch")));
  EXPECT_THAT(content_of("t.html"), HasSubstr("gemm/matmul/m=64,n=1,k=1/f32/x1"));
}

// All three of c [m, n] = a [m, k] b [k, n] in f32 are kept: 4 (m k + k n + m n) bytes, so with n = k = 16384 m =
// (bytes / 4 - k n) / (n + k) rows fit.
TEST_F(TuneBatch, TheLargestByPlanIsWhatTheMemoryHolds) {
  const Json json = parse_json(
      exits(0, tune("gemm/matmul/m=16384,n=16384,k=16384 --tier large --precision f32 --dry-run --json -")).out,
      "stdout");
  const auto available = json["available_bytes"].get<std::int64_t>();
  constexpr std::int64_t n = 16384;
  EXPECT_EQ(json["curves"][0]["largest_by_plan"], (available / 4 - n * n) / (2 * n));
  EXPECT_TRUE(json["curves"][0]["trials"].empty());
}

TEST_F(TuneBatch, EndsWithItsBudgetAndSaysWhatItDidNotTry) {
  EXPECT_THAT(exits(0, tune_tiny("--budget 1")).out,
              AllOf(HasSubstr("largest that fits  at least "), HasSubstr("(--budget)")));
}

TEST_F(TuneBatch, OfBatchesThatFailNoneIsBest) {
  EXPECT_THAT(exits(1, tune_tiny("--batch 8 --inject-error gemm=bit")).out,
              AllOf(HasSubstr("fail"), HasSubstr("best throughput    none passed")));
}

TEST_F(TuneBatch, RefusesWhatHasNoBatchOrIsNoWorkload) {
  EXPECT_THAT(exits(2, tune("gpt2_trian_step")).err,
              HasSubstr("no workload or case is called 'gpt2_trian_step'; did you mean 'gpt2_train_step'?"));
  EXPECT_THAT(exits(2, tune("memory/copy")).err, HasSubstr("memory/copy has no batch"));
  EXPECT_THAT(exits(2, tune({})).err, HasSubstr("tune-batch needs a workload"));
}

}  // namespace tune_batch_test
}  // namespace gpubench

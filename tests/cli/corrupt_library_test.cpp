// The real program with a library that corrupts its results (tests/faulty_cpu/corrupt_onednn.cpp): each fails, and
// those that come now and then are seen as often as the report says.
//
// GPUBENCH_TRIAL_CORRUPTED: how many runs with one wrong launch of many (`ctest -C trials -L trials`: 100).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <map>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/cli/child.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;

class CorruptLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(GPUBENCH_SANITIZED)
    GTEST_SKIP() << "a sanitizer's library wants to be the first that is loaded";
#endif
  }
  static ChildResult run(const std::string& kind, std::vector<std::string> words,
                         std::map<std::string, std::string> variables = {}) {
    words.insert(words.begin(), GPUBENCH_PROGRAM);
    words.insert(words.end(), {"--suite", "gemm", "--device", "cpu", "--preset", "minimal", "--progress", "none",
                               "--json", "-", "--tuning-cache", "off"});
    variables.insert({{"LD_PRELOAD", GPUBENCH_CORRUPT_ONEDNN}, {"CORRUPT_ONEDNN", kind}});
    return run_child(words, variables);
  }
  static Json only_case(const ChildResult& result) {
    const Json report = parse_json(result.out, "the report", ReadLimits{});
    const Json& cases = report["gpubench"]["cases"];
    EXPECT_EQ(cases.size(), 1U) << result.err;
    return cases.empty() ? Json() : cases[0];
  }
};

const std::vector<std::string> small{"--tier", "smoke", "--filter", "gemm/matmul/m=512,n=512,k=512/f32"};
// 2304 * 1024 elements, of which the default check judges a sample, and sums of all.
const std::vector<std::string> large{"--tier", "quick", "--filter", "gemm/linear_forward/m=1024,n=2304,k=768/f32"};

TEST_F(CorruptLibrary, OfALibraryThatIsRightPasses) {
  EXPECT_EQ(only_case(run("", small))["status"], "pass");
  EXPECT_EQ(only_case(run("", large))["status"], "pass");
}

TEST_F(CorruptLibrary, ThatIsWrongEverywhereFails) {
  for (const std::string kind : {"sign", "scale", "nan"}) {
    const ChildResult result = run(kind, small);
    EXPECT_EQ(result.exit_code, 1) << kind << result.err;
    EXPECT_EQ(only_case(result)["status"], "fail") << kind;
  }
}

TEST_F(CorruptLibrary, ThatIsWrongInOneElementOfMillionsFailsThereAlone) {
  EXPECT_EQ(only_case(run("element", small))["status"], "pass");
  // Not the implementation that happens to be fastest: one that repacks its operands has them corrupted as well.
  std::vector<std::string> words = large;
  words.push_back("--deterministic");
  const Json one = only_case(run("element", words));
  EXPECT_EQ(one["status"], "fail");
  EXPECT_THAT(one["reason"].get<std::string>(), HasSubstr("1 of "));
}

TEST_F(CorruptLibrary, ThatIsWrongOnSeveralThreadsFailsThereAlone) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one processor";
  EXPECT_EQ(only_case(run("threads", small))["status"], "fail");
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(only_case(run("threads", small))["status"], "pass");
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  const ChildResult determinism =
      run_child({GPUBENCH_PROGRAM, "determinism", "--device", "cpu", "--suite", "gemm", "--filter", small.back()},
                {{"LD_PRELOAD", GPUBENCH_CORRUPT_ONEDNN}, {"CORRUPT_ONEDNN", "threads"}});
  EXPECT_EQ(determinism.exit_code, 0) << determinism.err;  // a property, not promised
  EXPECT_THAT(determinism.out, HasSubstr("1 thread             the same bits in 0 of 1 cases"));
}

// Of n rechecks with one wrong launch of `each`, 1 - (1 - 1 / each)^n show one: with 1,000 and 1,000 63%. The launches
// here come in turn, so that a run of `each` launches or more meets one for certain; rounds and warm-up meet some too.
TEST_F(CorruptLibrary, ThatIsWrongNowAndThenIsSeenAsOftenAsTheReportSaysOrMore) {
  constexpr int each = 1000, rechecks = 1000;
  const int trials = trial_count("GPUBENCH_TRIAL_CORRUPTED", 3);
  int seen = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<std::string> words = small;
    words.insert(words.end(), {"--recheck", std::to_string(rechecks), "--seed", std::to_string(trial + 1)});
    const Json one = only_case(run("launch", words, {{"CORRUPT_ONEDNN_EACH", std::to_string(each)}}));
    seen += one["status"] == "fail" ? 1 : 0;
  }
  tell_count("runs with one wrong launch of 1,000", trials);
  tell_count("of these seen", seen);
  EXPECT_GE(seen, std::floor(0.63 * trials));
}

}  // namespace
}  // namespace gpubench

// The real program with a library that corrupts results (tests/fakes/faulty_cpu/corrupt_onednn.cpp): each run fails;
// intermittent faults are detected as often as the report predicts.
//
// GPUBENCH_TRIAL_CORRUPTED: runs of each setting (`ctest -C trials -L trials`: 100).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// On a busy machine threads would spend most of the time waiting for each other.
class OnOneProcessor {
 public:
  OnOneProcessor() {
    cpu_set_t one;
    CPU_ZERO(&one);
    EXPECT_EQ(::sched_getaffinity(0, sizeof all_, &all_), 0);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&one) == 0; --cpu) {
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &one);
    }
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;
  ~OnOneProcessor() { ::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

class CorruptLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(GPUBENCH_SANITIZED)
    GTEST_SKIP() << "a sanitizer's library wants to be the first that is loaded";
#endif
  }
  static ChildResult start(const std::string& kind, const Words& words,
                           std::map<std::string, std::string> variables = {}) {
    variables.insert({{"LD_PRELOAD", paths::corrupt_onednn}, {"CORRUPT_ONEDNN", kind}});
    return run_child(Words{paths::program} + words, variables);
  }
  static ChildResult run(const std::string& kind, const Words& words,
                         const std::map<std::string, std::string>& variables = {}) {
    return start(kind, words + "--suite gemm --device cpu --preset minimal --progress none --json - --tuning-cache off",
                 variables);
  }
  static Json only_case(const ChildResult& result) {
    const Json report = parse_json(result.out, "the report", ReadLimits{});
    const Json& cases = report["gpubench"]["cases"];
    EXPECT_EQ(cases.size(), 1U) << result.err;
    return cases.empty() ? Json() : cases[0];
  }
};

const Words small("--tier smoke --filter gemm/matmul/m=512,n=512,k=512/f32");
// 2304 * 1024 elements: the default check judges a sample, and sums of all.
const Words large("--tier quick --filter gemm/linear_forward/m=1024,n=2304,k=768/f32");

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
  // Deterministic: the fastest implementation may repack its operands, which are then corrupted, too.
  const Json one = only_case(run("element", large + "--deterministic"));
  EXPECT_EQ(one["status"], "fail");
  EXPECT_THAT(one["reason"].get<std::string>(), HasSubstr("1 of "));
}

TEST_F(CorruptLibrary, ThatIsWrongOnSeveralThreadsFailsThereAlone) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one processor";
  EXPECT_EQ(only_case(run("threads", small))["status"], "fail");
  {
    const OnOneProcessor one;
    EXPECT_EQ(only_case(run("threads", small))["status"], "pass");
  }
  const ChildResult determinism =  // a property, not promised
      exits(0, start("threads", "determinism --device cpu --suite gemm --filter" + Words{small.back()}));
  EXPECT_THAT(determinism.out, HasSubstr("1 thread             the same bits in 0 of 1 cases"));
}

struct Row {
  std::string kind;
  std::string setting;
  Words words;
  int each = 0;  ///< of random: one launch in this many
  int rechecks = 0;
};

const Words of_1e5("--axis m=320 --axis n=320 --axis k=32");
const Words of_1e6("--axis m=1024 --axis n=1024 --axis k=32");

Words tiny(const std::string& recipe, const Words& size, const Words& more) {
  return "--tier smoke --deterministic --filter gemm/matmul/.*/" + recipe + "/" + size + more;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const std::string kind : {"sign", "scale", "nan", "threads"}) {
    all.push_back({kind, "f32, 10^5 elements", tiny("f32", of_1e5, {})});
    all.push_back({kind, "f32, 10^5 elements, --check full", tiny("f32", of_1e5, "--check full")});
  }
  for (const std::string recipe : {"f32", "bf16"}) {
    all.push_back({"element", recipe + ", 10^6 elements", tiny(recipe, of_1e6, {})});
    all.push_back({"element", recipe + ", 10^6 elements, --check full", tiny(recipe, of_1e6, "--check full")});
  }
  for (const int each : {100, 1000})
    all.push_back({"random", "f32, 10^5 elements, --check full", tiny("f32", of_1e5, "--check full"), each, 0});
  for (const auto& [each, rechecks] :
       {std::pair{100, 0}, {100, 100}, {1000, 0}, {1000, 100}, {1000, 1000}, {10'000, 1000}, {10'000, 10'000}}) {
    const std::string number = std::to_string(rechecks);
    all.push_back({"random", "f32, 10^5 elements" + (rechecks > 0 ? ", --recheck " + number : ""),
                   tiny("f32", of_1e5, {"--recheck", number}), each, rechecks});
  }
  return all;
}

// Prediction from the report of a run with a correct library. Random faults: each compared launch shows one with
// probability 1 / each. Compared are the launches of rounds, whose copies keep what the last run left, and the rechecks
// ("1000 rechecks: a fault in 1 of 1,000 launches is seen with 63%"). Other faults show if all elements are judged, or
// summed and off by more than `projected_fault` root mean squares: the sign, 2% of most, and a doubled element, the
// largest of 64, are off by more than one.
double predicted(const Row& row, const Json& one) {
  if (row.each == 0) {
    for (const Json& op : one["parity"]["ops"]) {
      const bool all_judged = op["judged"] == op["elements"];
      const bool in_sums = op.contains("projected") && op["projected"] == op["elements"] && op["projected_fault"] < 1.0;
      EXPECT_TRUE(all_judged || in_sums) << row.kind << dump(op);
    }
    return 1.0;
  }
  std::int64_t compared = row.rechecks;
  for (const Json& round : one["rounds"]) {
    const auto runs = static_cast<std::int64_t>(round["device_ns"].size()) * one["batch"].get<std::int64_t>();
    compared += std::min(runs, one["copies"].get<std::int64_t>());
  }
  return -std::expm1(static_cast<double>(compared) * std::log1p(-1.0 / row.each));
}

// The probability of at most `seen` of `trials`, each with `rate`.
double chance_of_at_most(int seen, int trials, double rate) {
  if (rate >= 1.0) return seen < trials ? 0.0 : 1.0;
  double sum = 0.0;
  for (int k = 0; k <= seen; ++k)
    sum += std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) - std::lgamma(trials - k + 1.0) +
                    k * std::log(rate) + (trials - k) * std::log1p(-rate));
  return std::min(sum, 1.0);
}

// Clopper and Pearson's 95% interval: the rates at which at least, and at most, that many have 2.5%.
std::pair<double, double> interval_of(int seen, int trials) {
  const auto solve = [](const auto& is_above) {
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 60; ++i) (is_above((low + high) / 2.0) ? high : low) = (low + high) / 2.0;
    return low;
  };
  const double low =
      seen == 0 ? 0.0 : solve([&](double rate) { return 1.0 - chance_of_at_most(seen - 1, trials, rate) > 0.025; });
  const double high =
      seen == trials ? 1.0 : solve([&](double rate) { return chance_of_at_most(seen, trials, rate) < 0.025; });
  return {low, high};
}

// A row falls below its prediction by chance in one of 1,000 trials.
TEST_F(CorruptLibrary, IsSeenAsOftenAsTheReportSaysOrMore) {
  const int trials = trial_count("GPUBENCH_TRIAL_CORRUPTED", 2);
  std::printf("| corruption | setting | predicted | seen | 95%% interval |\n| --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows()) {
    if (trials < 100 && row.rechecks > 1000) continue;  // seconds each
    std::optional<OnOneProcessor> one_processor;
    if (row.kind != "threads") one_processor.emplace();
    Words words = row.words + "--seed 1";
    const Json clean = only_case(run("", words));
    if (row.setting.starts_with("bf16") && clean["status"] == "unsupported") continue;  // by this processor's oneDNN
    ASSERT_EQ(clean["status"], "pass") << row.kind;
    const double rate = predicted(row, clean);
    int seen = 0;
    for (int trial = 1; trial <= trials; ++trial) {
      words.back() = std::to_string(trial);
      const Json one = only_case(
          run(row.kind, words,
              {{"CORRUPT_ONEDNN_EACH", std::to_string(row.each)}, {"CORRUPT_ONEDNN_SEED", std::to_string(trial)}}));
      seen += one["status"] == "fail" ? 1 : 0;
    }
    const auto [low, high] = interval_of(seen, trials);
    std::printf("| %s%s | %s | %.3g%% | %d of %d | %.3g to %.3g%% |\n", row.kind.c_str(),
                row.each > 0 ? (", 1 launch of " + std::to_string(row.each)).c_str() : "", row.setting.c_str(),
                100.0 * rate, seen, trials, 100.0 * low, 100.0 * high);
    std::fflush(stdout);
    EXPECT_GE(chance_of_at_most(seen, trials, rate), 0.001) << row.kind << " " << row.setting;
  }
}

TEST(BinomialOfTrials, HasTheValuesOfItsDefinition) {
  EXPECT_NEAR(chance_of_at_most(1, 3, 0.5), 0.5, 1e-12);  // 1/8 + 3/8
  EXPECT_NEAR(chance_of_at_most(0, 2, 0.1), 0.81, 1e-12);
  EXPECT_EQ(chance_of_at_most(9, 10, 1.0), 0.0);
  const auto [low, high] = interval_of(0, 10);
  EXPECT_EQ(low, 0.0);
  EXPECT_NEAR(high, 1.0 - std::pow(0.025, 0.1), 1e-9);  // (1 - high)^10 = 2.5%
  EXPECT_NEAR(interval_of(10, 10).first, std::pow(0.025, 0.1), 1e-9);
}

const Words of_320 = "--device cpu --suite gemm --filter gemm/matmul/.*/f32/" + of_1e5;

// With the usual seed launches 91 and 148 are corrupted; a busy machine has 400 in these three seconds.
TEST_F(CorruptLibrary, NowAndThenIsNamedByASoakWithOpAndElement) {
  const ChildResult result =
      exits(1, start("random", "soak" + of_320 + "--minutes 0.05", {{"CORRUPT_ONEDNN_EACH", "50"}}));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("launches left other bits than the one that was judged, the first:\n"),
                    HasSubstr("gemm/matmul/m=320,n=320,k=32/f32/x1: op 'c' (gemm, by onednn:"),
                    HasSubstr("): 1 of 102400 elements of 'c' differ, the first at ["), HasSubstr("soak FAILED\n")));
}

TEST_F(CorruptLibrary, NowAndThenIsNamedByDeterminismWithOpAndElement) {
  const ChildResult result = exits(1, start("random", "determinism" + of_320 + "--runs 30 --threads 0 --deterministic",
                                            {{"CORRUPT_ONEDNN_EACH", "2"}}));
  EXPECT_THAT(result.out, AllOf(HasSubstr("again: 'c'["), HasSubstr("of op 'c' (gemm), "), HasSubstr("BROKEN: again")));
}

}  // namespace
}  // namespace gpubench

// The estimates of --dry-run; expected values follow from the protocol and the rates in estimate.cpp.
#include <gtest/gtest.h>

#include "harness/run/estimate.h"
#include "reference/ops/gemm.h"

namespace gpubench::estimate_test {
namespace {

// A square product; with two ops also the product's square.
class Product final : public Workload {
 public:
  explicit Product(int ops) : ops_(ops) {}
  [[nodiscard]] WorkloadInfo info() const override {
    return {"product", "a case for tests", "", PrimaryMetric::flop_per_s, "rows", CacheMode::cold};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", 8}}, "tiny", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case& c) const override {
    const std::int64_t n = c.dim("n");
    const DType type = recipe(c.recipe).tensor;
    Program p;
    const ValueId a = p.add(tensor("a", type, {n, n}, Role::input));
    const ValueId b = p.add(tensor("b", type, {n, n}, Role::input));
    ValueId x = gemm(p, {}, {}, "c", a, b).c;
    if (ops_ == 2) x = gemm(p, {}, {}, "d", x, b).c;
    return p;
  }
  [[nodiscard]] double items(const Case& c) const override { return static_cast<double>(c.dim("n")); }

 private:
  int ops_;
};

PlannedCase product(std::int64_t n, const std::string& recipe_name, int ops = 1) {
  PlannedCase planned;
  planned.c.suite = "sim";
  planned.c.workload = "product";
  planned.c.dims = {{"n", n}};
  planned.c.recipe = recipe_name;
  planned.c.cache = CacheMode::cold;
  planned.workload = std::make_shared<Product>(ops);
  planned.bytes = planned.workload->build(planned.c).bytes();
  return planned;
}

// 2 x 2048^3 = 17.18 GFLOP at 2 x 80 GFLOP/s: 107.4 ms a run. Quick: 1 run to estimate, 3.7 rounds of 1 sample (which
// fits into 1/6 s) without warm-up: 4.7 runs, 0.505 s. Checking: 15 ms, 1.2 ms for the op, 50.33 MB of tensors at 2 ns,
// 100 MB of copies at 0.4 ns, 16.78 MB of output at 7 ns, and 60 MFLOP at 0.5 ns: 0.304 s.
TEST(Estimate, ALargeProductTakesItsRuns) {
  EXPECT_NEAR(estimate(product(2048, "f32"), {Tier::quick}, 2).seconds, 0.505 + 0.304, 0.01);
}

// A warm-up of 20 ms, 3.7 rounds of 5 samples of 0.5 ms x 1.4 and a warm-up of 5 ms: 51.5 ms; 16.2 ms of checking.
TEST(Estimate, ASmallCaseTakesItsShortestSamples) {
  EXPECT_NEAR(estimate(product(8, "f32"), {Tier::quick}, 2).seconds, 0.0677, 0.001);
}

TEST(Estimate, NarrowTypesAndMoreCoresAreFaster) {
  const double wide = estimate(product(4096, "f32"), {Tier::quick}, 2).seconds;

  EXPECT_LT(estimate(product(4096, "bf16"), {Tier::quick}, 2).seconds, 0.6 * wide);
  EXPECT_LT(estimate(product(4096, "f32"), {Tier::quick}, 4).seconds, 0.7 * wide);
}

// Each of two ops is also timed alone, a sample of 0.7 ms, and takes 1.2 ms to judge.
TEST(Estimate, OpsOfAProgramAreAlsoTimedAlone) {
  const double one = estimate(product(8, "f32", 1), {Tier::quick}, 2).seconds;
  const double two = estimate(product(8, "f32", 2), {Tier::quick}, 2).seconds;

  EXPECT_NEAR(two - one, 2 * 0.0007 + 0.0012, 0.0002);
}

TEST(Estimate, ALongCaseOfTheStandardTierEndsWithItsBudget) {
  // At least 10 rounds of 10 samples and 3 warm-ups; before, 5 warm-ups and 3 runs: 138 runs of 107.4 ms.
  EXPECT_NEAR(estimate(product(2048, "f32"), {Tier::standard}, 2).seconds, 138 * 0.1074 + 0.524, 0.1);
}

TEST(Estimate, OfSeveralCasesIsTheSumOfSecondsAndTheLargestMemory) {
  const std::vector<PlannedCase> both{product(8, "f32"), product(2048, "f32")};

  const Estimate all = estimate(both, {Tier::quick}, 2);

  EXPECT_DOUBLE_EQ(all.seconds,
                   estimate(both[0], {Tier::quick}, 2).seconds + estimate(both[1], {Tier::quick}, 2).seconds);
  EXPECT_EQ(all.bytes, 3 * 2048 * 2048 * 4);
}

TEST(Estimate, EqualProductsArePlannedOnceAndSmallOnesNotAtAll) {
  const Effort planning{Tier::quick, {}, CheckMode::sample, 3.0};

  EXPECT_DOUBLE_EQ(estimate(product(64, "f32", 2), planning, 2).planning_s, 3.0);
  EXPECT_DOUBLE_EQ(estimate(product(64, "f32", 2), planning, 2).seconds,
                   3.0 + estimate(product(64, "f32", 2), {Tier::quick}, 2).seconds);
  EXPECT_DOUBLE_EQ(estimate(product(4, "f32"), planning, 2).planning_s, 0.0);  // 128 flop, 192 bytes
}

TEST(Remaining, CountsPlanningWhenTheCheckBegins) {
  Remaining left(std::unordered_map<std::string, ExpectedCase>{{"c", {2.0, 8.0, 4, 10.0}}});
  left.phase("c", "prepare");
  EXPECT_DOUBLE_EQ(left.seconds(0.0).value(), 20.0);
  left.phase("c", "check");
  EXPECT_DOUBLE_EQ(left.seconds(10.0).value(), 10.0);
}

// Ten cases of 10 s: 2 s of checking, 8 s of 4 rounds. 100 s in all, of which 5 s count as finished.
Remaining ten_cases() {
  std::unordered_map<std::string, ExpectedCase> cases;
  for (int i = 0; i < 10; ++i) cases["c" + std::to_string(i)] = {2.0, 8.0, 4};
  return Remaining(cases);
}

TEST(Remaining, IsTheEstimateAtTheStart) { EXPECT_DOUBLE_EQ(ten_cases().seconds(0.0).value(), 100.0); }

TEST(Remaining, IsTheRestWhereARunTakesWhatWasEstimated) {
  Remaining left = ten_cases();
  for (int i = 0; i < 5; ++i) left.finished("c" + std::to_string(i));
  EXPECT_DOUBLE_EQ(left.seconds(50.0).value(), 50.0);
}

// Half is done after 150 s instead of 50 s: the other half takes 50 s x (150 + 5) / (50 + 5).
TEST(Remaining, FollowsTheMachineWhereItIsSlower) {
  Remaining left = ten_cases();
  for (int i = 0; i < 5; ++i) left.finished("c" + std::to_string(i));
  EXPECT_NEAR(left.seconds(150.0).value(), 50.0 * 155.0 / 55.0, 1e-9);
}

// Nine cases of 1 s are finished, one of 91 s is left. By number a tenth would be left: 1 s.
TEST(Remaining, CountsCasesByWhatTheyTakeAndNotByTheirNumber) {
  std::unordered_map<std::string, ExpectedCase> cases{{"large", {1.0, 90.0, 3}}};
  for (int i = 0; i < 9; ++i) cases["c" + std::to_string(i)] = {0.5, 0.5, 3};
  Remaining left(cases);
  for (int i = 0; i < 9; ++i) left.finished("c" + std::to_string(i));
  EXPECT_DOUBLE_EQ(left.seconds(9.0).value(), 91.0);
}

// Each case has 1 s of checking and 2 of its 4 rounds done, and the third begins: 5 s of 10.
TEST(Remaining, CountsRoundsOfCasesThatAreNotFinished) {
  Remaining left = ten_cases();
  for (int i = 0; i < 10; ++i) {
    const std::string id = "c" + std::to_string(i);
    left.phase(id, "prepare");
    left.phase(id, "check");
    for (int round = 0; round < 3; ++round) left.phase(id, "time");
  }
  EXPECT_DOUBLE_EQ(left.seconds(50.0).value(), 50.0);
  EXPECT_NEAR(left.seconds(100.0).value(), 50.0 * 105.0 / 55.0, 1e-9);
}

// Up to 9 s of each case: unexpected rounds and a restarted case add nothing.
TEST(Remaining, NeverCountsAPartTwice) {
  Remaining left = ten_cases();
  for (int round = 0; round < 20; ++round) left.phase("c0", "time");
  left.phase("c0", "recheck");
  left.phase("c0", "time");
  left.phase("c0", "prepare");
  EXPECT_DOUBLE_EQ(left.seconds(9.0).value(), 91.0);
  left.finished("c0");
  left.finished("c0");
  left.finished("nobody knows it");
  EXPECT_DOUBLE_EQ(left.seconds(10.0).value(), 90.0);
}

TEST(Remaining, IsNothingWithoutAnEstimateAndAtTheEndZero) {
  EXPECT_FALSE(Remaining().seconds(5.0).has_value());
  Remaining left = ten_cases();
  for (int i = 0; i < 10; ++i) left.finished("c" + std::to_string(i));
  EXPECT_EQ(left.seconds(500.0).value(), 0.0);
}

}  // namespace
}  // namespace gpubench::estimate_test

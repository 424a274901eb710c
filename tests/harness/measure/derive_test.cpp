// Rates: the only division of work by time.
#include "harness/measure/derive.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace derive_test {

WorkloadInfo info(PrimaryMetric headline) { return {"w", "", "m", headline, "tokens", CacheMode::cold}; }

Summary taking(double median_ns) {
  Summary summary;
  summary.median_ns = median_ns;
  return summary;
}

// 2 ms: 4e9 FLOP are 2e12 a second, 6e6 bytes 3e9, 1000 tokens 5e5.
TEST(Derive, RatesAreWorkOverTheMedian) {
  const Derived d = derive(info(PrimaryMetric::flop_per_s), 1000.0, {4e9, 6e6}, taking(2e6), {});
  EXPECT_DOUBLE_EQ(d.flop_per_s, 2e12);
  EXPECT_DOUBLE_EQ(d.bytes_per_s, 3e9);
  EXPECT_DOUBLE_EQ(d.items_per_s, 5e5);
  EXPECT_EQ(d.flop, 4e9);
  EXPECT_EQ(d.bytes, 6e6);
}

TEST(Derive, TheHeadlineIsWhatTheWorkloadSays) {
  const Cost cost{4e9, 6e6};
  const Derived flop = derive(info(PrimaryMetric::flop_per_s), 1000.0, cost, taking(2e6), {});
  EXPECT_EQ(flop.headline, flop.flop_per_s);
  EXPECT_EQ(flop.headline_unit, "FLOP/s");
  const Derived bytes = derive(info(PrimaryMetric::bytes_per_s), 1000.0, cost, taking(2e6), {});
  EXPECT_EQ(bytes.headline, bytes.bytes_per_s);
  EXPECT_EQ(bytes.headline_unit, "B/s");
  const Derived items = derive(info(PrimaryMetric::items_per_s), 1000.0, cost, taking(2e6), {});
  EXPECT_EQ(items.headline, items.items_per_s);
  EXPECT_EQ(items.headline_unit, "tokens/s");
}

// A step of 10: ops alone take 6 and 3; launch gaps are the missing 1.
TEST(Derive, SharesAndRemainderAddUpToTheStep) {
  const std::vector<OpShare> ops{{"a", "gemm", "", 6.0, 0.0, 0.0, 0.0}, {"b", "gelu_forward", "", 3.0, 0.0, 0.0, 0.0}};
  const Derived d = derive(info(PrimaryMetric::items_per_s), 1.0, {}, taking(10.0), ops);
  ASSERT_EQ(d.breakdown.size(), 2U);
  EXPECT_DOUBLE_EQ(d.breakdown[0].share, 0.6);
  EXPECT_DOUBLE_EQ(d.breakdown[1].share, 0.3);
  EXPECT_DOUBLE_EQ(d.remainder, 0.1);
}

TEST(Derive, OverlapMakesTheRemainderNegative) {
  const std::vector<OpShare> ops{{"a", "gemm", "", 8.0, 0.0, 0.0, 0.0}, {"b", "gemm", "", 4.0, 0.0, 0.0, 0.0}};
  EXPECT_DOUBLE_EQ(derive(info(PrimaryMetric::items_per_s), 1.0, {}, taking(10.0), ops).remainder, -0.2);
}

// 6 J per run of 2 ms. One run: 4e9 FLOP, or 1000 tokens, or 6e6 bytes.
TEST(Derive, EnergyIsToldPerUnitOfTheHeadlinesWork) {
  const Cost cost{4e9, 6e6};
  for (const auto& [headline, per_work] :
       {std::pair(PrimaryMetric::flop_per_s, 1.5e-9), std::pair(PrimaryMetric::items_per_s, 6e-3),
        std::pair(PrimaryMetric::bytes_per_s, 1e-6)}) {
    Derived d = derive(info(headline), 1000.0, cost, taking(2e6), {});
    add_energy(d, 6.0, taking(2e6));
    EXPECT_EQ(d.energy_j, 6.0);
    EXPECT_NEAR(d.energy_per_work_j.value(), per_work, 1e-12 * per_work);
  }
}

TEST(Derive, WhereTheEnergyIsNotKnownNothingIsToldOfIt) {
  Derived d = derive(info(PrimaryMetric::flop_per_s), 1000.0, {4e9, 6e6}, taking(2e6), {});
  add_energy(d, std::nullopt, taking(2e6));
  EXPECT_FALSE(d.energy_j || d.energy_per_work_j);

  Derived no_work = derive(info(PrimaryMetric::flop_per_s), 1000.0, {0.0, 6e6}, taking(2e6), {});
  add_energy(no_work, 6.0, taking(2e6));
  EXPECT_EQ(no_work.energy_j, 6.0);
  EXPECT_FALSE(no_work.energy_per_work_j.has_value());
}

TEST(Derive, WithoutATimeThereIsNoRate) {
  const Derived d = derive(info(PrimaryMetric::flop_per_s), 1000.0, {4e9, 6e6}, Summary{}, {});
  EXPECT_EQ(d.flop_per_s, 0.0);
  EXPECT_EQ(d.headline, 0.0);
  EXPECT_EQ(d.flop, 4e9);
}

}  // namespace derive_test
}  // namespace gpubench

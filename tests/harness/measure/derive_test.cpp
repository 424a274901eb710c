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

TEST(Derive, TheHeadlineIsTheWorkloads) {
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
TEST(Derive, EnergyIsGivenPerUnitOfTheHeadlinesWork) {
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

TEST(Derive, UnknownEnergyIsLeftOut) {
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

namespace rank_spread_test {

RoundRecord round_of(std::vector<std::vector<double>> ranks) {
  RoundRecord round;
  round.times.ranks.emplace();
  for (std::vector<double>& ns : ranks) round.times.ranks->push_back({std::move(ns)});
  return round;
}

TEST(RankSpread, NamesTheRankThatIsSlowestMostOftenAndByHowMuch) {
  // Samples: rank 2 late by 10%, 20% and 30% of the median of three; rank 0 once.
  const std::vector<RoundRecord> rounds{round_of({{100, 100}, {100, 100}, {110, 120}}),
                                        round_of({{100, 150}, {90, 100}, {130, 100}})};
  const std::optional<RankSpread> spread = rank_spread(rounds);

  ASSERT_TRUE(spread.has_value());
  EXPECT_EQ(spread->slowest, 2);
  EXPECT_DOUBLE_EQ(spread->slowest_share, 0.75);
  EXPECT_NEAR(spread->straggler, 0.25, 1e-12);  // of 0.1, 0.2, 0.3 and 0.5 the middle two
}

TEST(RankSpread, OneRankHasNone) { EXPECT_FALSE(rank_spread(std::vector{RoundRecord{}}).has_value()); }

TEST(RankSpread, FlagsARankThatIsAlwaysLateByItsNumber) {
  RankSpread spread;
  spread.straggler = 0.2;
  spread.slowest = 3;
  spread.slowest_share = 0.9;
  EXPECT_EQ(straggler_flags(spread), std::vector<std::string>{"rank 3 straggles"});
  spread.slowest_share = 0.4;
  EXPECT_EQ(straggler_flags(spread), std::vector<std::string>{"stragglers"});
  spread.straggler = 0.04;
  EXPECT_TRUE(straggler_flags(spread).empty());
}

CaseRecord record_on(int ranks, double items_per_s, int units) {
  CaseRecord record;
  record.c.suite = "transformer";
  record.c.ranks = ranks;
  record.verdict = Verdict::pass;
  record.derived.items_per_s = items_per_s;
  if (ranks > 1) record.derived.ranks = RankSpread{.units = units};
  return record;
}

TEST(Efficiency, ComparesRatesPerUnitWithThoseOfOneRank) {
  // Two devices of 4 units reach 180 of 200. Two ranks on one processor share its 4 units.
  std::vector<CaseRecord> records{record_on(1, 100.0, 4), record_on(2, 180.0, 8), record_on(2, 90.0, 4)};
  add_efficiency(records, 4);
  EXPECT_DOUBLE_EQ(records[1].derived.ranks->efficiency.value(), 0.9);
  EXPECT_DOUBLE_EQ(records[2].derived.ranks->efficiency.value(), 0.9);
}

TEST(Efficiency, NeedsAPassingRecordOfTheSameCaseOnOneRank) {
  std::vector<CaseRecord> records{record_on(1, 100.0, 4), record_on(2, 180.0, 8)};
  records[0].verdict = Verdict::fail;
  add_efficiency(records, 4);
  EXPECT_FALSE(records[1].derived.ranks->efficiency.has_value());
}

// An interval from 60 to 140 around 100 has a half-width of 40%.
TEST(Efficiency, IsNotMadeOfAnUnreliableTimingOnEitherSide) {
  for (const std::size_t noisy : {0U, 1U}) {
    std::vector<CaseRecord> records{record_on(1, 100.0, 4), record_on(2, 180.0, 8)};
    for (CaseRecord& record : records) {
      record.summary.rounds = 3;
      record.summary.median_ns = record.summary.ci95_low_ns = record.summary.ci95_high_ns = 100.0;
    }
    records[noisy].summary.ci95_low_ns = 60.0;
    records[noisy].summary.ci95_high_ns = 140.0;
    add_efficiency(records, 4);
    EXPECT_FALSE(records[1].derived.ranks->efficiency.has_value()) << noisy;
  }
}

}  // namespace rank_spread_test

}  // namespace gpubench

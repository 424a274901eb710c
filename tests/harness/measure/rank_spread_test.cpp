#include "harness/measure/rank_spread.h"

#include <gtest/gtest.h>

namespace gpubench {
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
  // Two devices of 4 units: 180 of the 200 that two lone ones make. Two ranks on one processor share its 4 units.
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

// Half of an interval from 60 to 140 around 100 is 40%.
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

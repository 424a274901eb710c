#include "harness/measure/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Nanoseconds of a link in a measured round.
using TimeOf = std::function<double(int a, int b, int round)>;

/// The cases of all pairings of four ranks, three measured rounds of two samples of two runs; the second rank of a pair
/// ends a nanosecond earlier.
std::vector<CaseRecord> pairs_of_four(const TimeOf& time) {
  std::vector<CaseRecord> records;
  int number = 0;
  for (const std::vector<int>& partners :
       {std::vector<int>{1, 0, 3, 2}, std::vector<int>{2, 3, 0, 1}, std::vector<int>{3, 2, 1, 0}}) {
    CaseRecord record;
    record.c.suite = "collectives";
    record.c.workload = "send_recv_pairs";
    record.c.dims = {{"bytes", 1000}, {"round", ++number}};
    record.c.recipe = "f32";
    record.c.ranks = 4;
    record.verdict = Verdict::pass;
    record.batch = 2;
    record.derived.collective = CollectiveRates{.message_bytes = 1000.0};
    record.derived.ranks = RankSpread{.partners = partners};
    for (int round = 0; round < 3; ++round) {
      RoundRecord measured;
      measured.times.ranks.emplace();
      for (int rank = 0; rank < 4; ++rank) {
        const int other = partners[static_cast<std::size_t>(rank)];
        const double ns = time(std::min(rank, other), std::max(rank, other), round) - (rank > other ? 1.0 : 0.0);
        measured.times.ranks->push_back({{2.0 * ns, 2.0 * ns}});
      }
      record.rounds.push_back(std::move(measured));
    }
    records.push_back(std::move(record));
  }
  return records;
}

std::vector<std::string> names_of(const std::vector<LatePart>& parts) {
  std::vector<std::string> names;
  for (const LatePart& part : parts) names.push_back(part.name);
  return names;
}

TEST(Links, EachHasTheTimeOfTheLaterOfItsRanksAndTheMessageEachWay) {
  const std::vector<LinkMap> maps =
      link_maps(pairs_of_four([](int a, int b, int round) { return 100.0 * a + 10.0 * b + round; }));
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_EQ(maps[0].name, "collectives/send_recv_pairs/bytes=1000/f32/x4");
  ASSERT_EQ(maps[0].links.size(), 6U);
  const Link* link = maps[0].between(3, 1);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->a, 1);
  EXPECT_EQ(link->median_ns, 131.0);
  EXPECT_THAT(link->rounds_ns, ElementsAre(130.0, 131.0, 132.0));
  EXPECT_DOUBLE_EQ(maps[0].rate(link->median_ns), 1000.0 / 131e-9);
  EXPECT_EQ(maps[0].between(2, 2), nullptr);
}

TEST(Links, ThatAreAlikeHaveNoLateOne) {
  const std::vector<LinkMap> maps =
      link_maps(pairs_of_four([](int a, int b, int /*round*/) { return 1000.0 + 10.0 * a + b; }));
  EXPECT_THAT(late_parts(maps.at(0)), IsEmpty());
}

TEST(Links, ARankWhoseLinksAreAllLateIsNamedAndItsLinksAreNot) {
  const std::vector<LinkMap> maps =
      link_maps(pairs_of_four([](int a, int b, int /*round*/) { return a == 2 || b == 2 ? 1100.0 : 1000.0; }));
  EXPECT_EQ(maps.at(0).middle_ns, 1000.0);
  const std::vector<LatePart> late = late_parts(maps.at(0));
  EXPECT_THAT(names_of(late), ElementsAre("rank 2"));
  EXPECT_NEAR(late.at(0).lateness.late, 0.1, 1e-12);
  EXPECT_EQ(late.at(0).lateness.rounds_late, 3);
  EXPECT_EQ(late.at(0).lateness.rounds, 3);
}

TEST(Links, OneLateLinkIsNamedWithItsRanksTheLatestFirst) {
  const auto time = [](int a, int b, int /*round*/) {
    return a == 0 && b == 3 ? 1300.0 : a == 1 && b == 2 ? 1070.0 : 1000.0;
  };
  EXPECT_THAT(names_of(late_parts(link_maps(pairs_of_four(time)).at(0))),
              ElementsAre("ranks 0 and 3", "ranks 1 and 2"));
}

TEST(Links, TheHostAndTheGpuOfALateRankAreNamedWhereTheyAreKnown) {
  const std::vector<RankPlace> places{{"a", "0"}, {"a", "1"}, {"b", "0"}, {"b", "1"}};
  const auto rank = [](int a, int b, int /*round*/) { return a == 2 || b == 2 ? 1100.0 : 1000.0; };
  EXPECT_THAT(names_of(late_parts(link_maps(pairs_of_four(rank)).at(0), places)), ElementsAre("rank 2 (b, GPU 0)"));
  const auto link = [](int a, int b, int /*round*/) { return a == 0 && b == 3 ? 1300.0 : 1000.0; };
  EXPECT_THAT(names_of(late_parts(link_maps(pairs_of_four(link)).at(0), places)),
              ElementsAre("ranks 0 (a, GPU 0) and 3 (b, GPU 1)"));
  EXPECT_EQ(rank_text(1, std::vector<RankPlace>{{"a", ""}, {"b", ""}}), "1 (b)");
  EXPECT_EQ(rank_text(1, {}), "1");
}

TEST(Links, LinksThatAreRarelyLateAreNotNamed) {
  const auto time = [](int a, int b, int round) { return a == 0 && b == 3 && round != 1 ? 1300.0 : 1000.0; };
  const std::vector<LinkMap> maps = link_maps(pairs_of_four(time));
  EXPECT_EQ(maps.at(0).between(0, 3)->lateness.rounds_late, 2);
  EXPECT_THAT(late_parts(maps[0]), IsEmpty());
}

// An interval from 60 to 140 around 100 has a half-width of 40%.
TEST(Links, WithUnreliableTimingAreNotNamed) {
  std::vector<CaseRecord> records =
      pairs_of_four([](int a, int b, int /*round*/) { return a == 0 && b == 3 ? 1300.0 : 1000.0; });
  CaseRecord& noisy = records[2];
  noisy.summary.rounds = 3;
  noisy.summary.median_ns = 100.0;
  noisy.summary.ci95_low_ns = 60.0;
  noisy.summary.ci95_high_ns = 140.0;
  const std::vector<LinkMap> maps = link_maps(records);
  EXPECT_TRUE(maps.at(0).between(0, 3)->lateness.unreliable);
  EXPECT_FALSE(maps[0].between(0, 1)->lateness.unreliable);
  EXPECT_THAT(late_parts(maps[0]), IsEmpty());
}

TEST(Links, OfTwoRanksFailuresAndVirtualRanksThereAreNone) {
  const TimeOf even = [](int, int, int) { return 1000.0; };
  std::vector<CaseRecord> records = pairs_of_four(even);
  for (CaseRecord& record : records) record.verdict = Verdict::fail;
  EXPECT_THAT(link_maps(records), IsEmpty());
  records = pairs_of_four(even);
  for (CaseRecord& record : records) record.c.modes = {"virtual"};
  EXPECT_THAT(link_maps(records), IsEmpty());
  records = pairs_of_four(even);
  for (CaseRecord& record : records) record.derived.ranks->partners = {1, 0};
  EXPECT_THAT(link_maps(records), IsEmpty());
}

TEST(Links, AreMadeOfValidRoundsAlone) {
  std::vector<CaseRecord> records = pairs_of_four([](int, int, int round) { return 1000.0 + round; });
  for (CaseRecord& record : records) {
    record.rounds[0].valid = false;
    record.rounds[1].times.ranks->pop_back();
  }
  EXPECT_THAT(link_maps(records).at(0).links.front().rounds_ns, ElementsAre(1002.0));
}

}  // namespace
}  // namespace gpubench

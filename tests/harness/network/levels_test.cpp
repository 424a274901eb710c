// Network levels, domains of groups, and seconds per level, computed by hand.
#include "harness/network/levels.h"
#include "tests/thrown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace gpubench {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Network beyond(const NetworkLevel& node, const std::vector<std::string>& words) { return parse_network(node, words); }
constexpr NetworkLevel h100{8, 450e9}, nvl72{72, 900e9};

std::string refusal(const std::vector<std::string>& words) {
  return thrown_text<std::invalid_argument>([&] { (void)beyond(h100, words); });
}

TEST(Network, IsParsedLevelByLevel) {
  const Network network = beyond(h100, {"256:50", "16384:25.5", "10"});
  EXPECT_EQ(to_string(network), "450 GB/s within 8 devices, 50 within 256, 25.5 within 16384, 10 beyond");
  EXPECT_EQ(level_name(network, 0), "node");
  EXPECT_EQ(level_name(network, 2), "to 16384");
  EXPECT_EQ(level_name(network, 3), "beyond 16384");
  EXPECT_EQ(to_string(beyond(h100, {"50"})), to_string(Network{}));
  EXPECT_EQ(level_name({}, 1), "network");
}

TEST(Network, InvalidLevelsAreErrors) {
  for (const char* word : {"", "x", "0", "-50", "nan", "inf", "50x", "1e10", ":50", "256:50"})
    EXPECT_THAT(refusal({word}), HasSubstr("is not GB/s; expected")) << word;
  for (const char* word : {"50", "256", "256:", ":50", "256:0", "256:nan", "x:50", "2.5:50", "99999999999999999999:50"})
    EXPECT_THAT(refusal({word, "25"}), HasSubstr("is not GPUS:GB/S; expected")) << word;
  for (const char* word : {"8:50", "4:50", "0:50", "-8:50", "100:50", "2097152:50"})
    EXPECT_THAT(refusal({word, "25"}), HasSubstr("is not a larger multiple of the 8 GPUs below")) << word;
  EXPECT_THAT(refusal({"256:50", "256:40", "25"}), HasSubstr("of the 256 GPUs below"));
}

// tp=8: a member on every eighth device. Nine fit into 72 devices, so 64 need eight domains of eight. 100 neighbors
// need two domains.
TEST(Scattered, GroupsFillTheirDomainsEvenly) {
  const Network network = beyond(nvl72, {"1152:100", "50"});
  EXPECT_THAT(domains_of({64, 8}, network), ElementsAre(8, 1, 1));
  EXPECT_EQ(in_nodes({64, 8}, network).in_node, 8.0);
  EXPECT_THAT(domains_of({288, 8}, network), ElementsAre(32, 2, 1));
  EXPECT_EQ(in_nodes({100, 1}, network).in_node, 50.0);
}

// Three devices each: two in a node of eight, 64 in 32 nodes. 16 devices each: two nodes, 16 in 32 nodes.
TEST(Scattered, MembersDoNotStraddleNodes) {
  const Network network = beyond(h100, {"256:50", "25"});
  EXPECT_THAT(domains_of({128, 3}, network), ElementsAre(64, 2, 1));
  EXPECT_THAT(domains_of({128, 16}, network), ElementsAre(128, 8, 1));
  EXPECT_THAT(domains_of({4, 512}, network), ElementsAre(4, 4, 1));
}

// 1,024 neighbors: 7/8 of all in the node, 31/32 of an eighth in the pod, 3/4 of a 256th beyond.
TEST(SecondsByLevel, EachLevelCarriesTheRestOfTheLevelBelow) {
  const Network network = beyond(h100, {"256:50", "25"});
  EXPECT_THAT(seconds_by_level(1e9, {1024, 1}, network),
              ElementsAre(DoubleEq(1e9 * 7 / 8 / 450e9), DoubleEq(1e9 / 8 * 31 / 32 / 50e9),
                          DoubleEq(1e9 / 256 * 3 / 4 / 25e9)));
}

TEST(SecondsByLevel, ALevelWithTwofoldOversubscriptionTakesTwiceAsLong) {
  const Scattered group{512, 8};
  const auto full = seconds_by_level(1e9, group, beyond(h100, {"256:50", "50"}));
  const auto half = seconds_by_level(1e9, group, beyond(h100, {"256:50", "25"}));
  EXPECT_THAT(half, ElementsAre(full[0], full[1], DoubleEq(2.0 * full[2])));
  EXPECT_GT(full[2], 0.0);
}

// Ranks at the same index in 32 nodes: one switch if rails are joined; eight racks of four nodes otherwise, where 7/8
// of a quarter of the bytes go beyond.
TEST(SecondsByLevel, ARailNeedsNoLevelBeyondWhereARackDoes) {
  const Scattered group{32, 8};
  EXPECT_THAT(seconds_by_level(1e9, group, beyond(h100, {"256:50", "25"})),
              ElementsAre(0.0, DoubleEq(1e9 * 31 / 32 / 50e9), 0.0));
  EXPECT_THAT(seconds_by_level(1e9, group, beyond(h100, {"32:50", "25"})),
              ElementsAre(0.0, DoubleEq(1e9 * 3 / 4 / 50e9), DoubleEq(1e9 / 4 * 7 / 8 / 25e9)));
}

TEST(SecondsByLevel, AGroupWithinANodeSendsNothingBeyond) {
  EXPECT_THAT(seconds_by_level(1e9, {9, 8}, beyond(nvl72, {"50"})), ElementsAre(DoubleEq(1e9 * 8 / 9 / 900e9), 0.0));
}

// Nine neighbors in two nodes: five, and four that send a quarter each.
TEST(SecondsByLevel, TheDomainWithTheFewestMembersIsTheSlowest) {
  EXPECT_THAT(seconds_by_level(1e9, {9, 1}, {}),
              ElementsAre(DoubleEq(1e9 * 4 / 5 / 450e9), DoubleEq(1e9 / 4 / 2 / 50e9)));
}

}  // namespace
}  // namespace gpubench

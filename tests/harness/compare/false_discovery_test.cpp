#include "harness/compare/false_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace false_discovery_test {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using P = std::vector<double>;

// n = 5, sorted .005 .009 .019 .022 .051; p n / rank: .025 .0225 .031667 .0275 .051; least from the right:
// .0225 .0225 .0275 .0275 .051.
TEST(FalseDiscovery, RatesAreTheLeastOfThoseBehindThem) {
  EXPECT_THAT(false_discovery_rates(P{0.022, 0.005, 0.051, 0.009, 0.019}),
              ElementsAre(DoubleNear(0.0275, 1e-15), DoubleNear(0.0225, 1e-15), DoubleNear(0.051, 1e-15),
                          DoubleNear(0.0225, 1e-15), DoubleNear(0.0275, 1e-15)));
}

// The fifteen p-values of the example in Benjamini and Hochberg (1995), section 3.2: at 5% the first four are findings
// (p_(4) = .0095 <= 4/15 * .05 = .01333) and the fifth is not (.0201 > .01667).
TEST(FalseDiscovery, TheAuthorsOwnExampleHasFourFindings) {
  const P p{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
            0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const P q = false_discovery_rates(p);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(q[i] < 0.05, i < 4) << i;
  EXPECT_NEAR(q[3], 0.0095 * 15 / 4, 1e-15);
}

TEST(FalseDiscovery, TiesShareTheRateOfTheirLastRank) {
  EXPECT_THAT(false_discovery_rates(P{0.02, 0.02, 0.02, 0.8}),
              ElementsAre(DoubleNear(0.08 / 3, 1e-15), DoubleNear(0.08 / 3, 1e-15), DoubleNear(0.08 / 3, 1e-15),
                          DoubleEq(0.8)));
}

TEST(FalseDiscovery, ASingleTestKeepsItsPValueAndNoTestHasNone) {
  EXPECT_THAT(false_discovery_rates(P{0.3}), ElementsAre(0.3));
  EXPECT_TRUE(false_discovery_rates(P{}).empty());
  EXPECT_THAT(false_discovery_rates(P{1.0, 1.0}), ElementsAre(1.0, 1.0));
}

}  // namespace false_discovery_test
}  // namespace gpubench

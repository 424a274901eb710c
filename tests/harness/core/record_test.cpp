// Verdicts: their names, and which of two is worse.
#include "harness/core/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace gpubench {
namespace {

constexpr std::array from_worst{Verdict::error,      Verdict::fail,        Verdict::downgraded, Verdict::not_proven,
                                Verdict::unverified, Verdict::unsupported, Verdict::skipped,    Verdict::pass};

TEST(Verdict, TheWorseOfTwoFollowsTheDocumentedOrder) {
  for (std::size_t a = 0; a < from_worst.size(); ++a) {
    for (std::size_t b = 0; b < from_worst.size(); ++b) {
      EXPECT_EQ(worse(from_worst[a], from_worst[b]), from_worst[std::min(a, b)])
          << name(from_worst[a]) << " " << name(from_worst[b]);
    }
  }
}

TEST(Verdict, NamesAreThoseOfTheReport) {
  EXPECT_EQ(name(Verdict::not_proven), "not_proven");
  EXPECT_EQ(name(Verdict::pass), "pass");
  EXPECT_EQ(name(Verdict::unsupported), "unsupported");
}

TEST(Record, NothingIsAPassByDefault) {
  EXPECT_NE(OpParity{}.verdict, Verdict::pass);
  EXPECT_NE(CaseRecord{}.verdict, Verdict::pass);
}

}  // namespace
}  // namespace gpubench

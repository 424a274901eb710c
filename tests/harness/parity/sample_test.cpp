#include "harness/parity/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpubench {
namespace scan_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

struct Stored {
  TensorSpec spec;
  std::vector<std::byte> bytes;

  Stored(DType type, Shape shape, Layout layout) : spec(tensor("t", type, std::move(shape), Role::activation)) {
    spec.layout = std::move(layout);
    bytes.resize(static_cast<std::size_t>(spec.bytes()));
    for (std::size_t i = 0; i < bytes.size(); i += size_of(type)) store(type, bytes.data() + i, 1.0);
  }
  Stored(DType type, Shape shape) : Stored(type, shape, Layout::row_major(shape)) {}
  std::byte* at(std::int64_t linear) {
    return bytes.data() + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype));
  }
  Scan scanned(std::int64_t most = 1000) { return scan(TensorView(spec, bytes.data()), most); }
};

TEST(Scan, FindsPoisonNaNAndInfinityInEveryFloatingType) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Stored t(type, {10000});
    store_poison(type, t.at(4100));
    store_poison(type, t.at(9999));
    store(type, t.at(17), std::nan(""));
    store(type, t.at(18), -std::numeric_limits<double>::infinity());
    const Scan found = t.scanned();
    EXPECT_EQ(found.unwritten, 2) << name(type);
    EXPECT_EQ(found.first_unwritten, 4100) << name(type);
    EXPECT_THAT(found.suspects, ElementsAre(17, 18, 4100, 9999)) << name(type);
  }
}

TEST(Scan, LargeFiniteElementsAreNotSuspects) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f8_e5m2}) {
    Stored t(type, {64});
    store(type, t.at(1), 50000.0);
    store(type, t.at(2), -50000.0);
    store(type, t.at(3), 0.0);
    EXPECT_THAT(t.scanned().suspects, IsEmpty()) << name(type);
  }
}

// All others are 1; extremes are reported by magnitude, without the sign.
TEST(Scan, FindsTheEightLargestAndTheFourSmallestMagnitudes) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Stored t(type, {20000});
    for (int i = 0; i < 9; ++i) store(type, t.at(2000 * i + 5), (i % 2 == 0 ? 1.0 : -1.0) * (i + 2));
    store(type, t.at(19999), 0.0);
    store(type, t.at(4096), -0.25);
    store(type, t.at(4095), 0.125);
    store(type, t.at(1), 0.5);
    store(type, t.at(2), std::nan(""));
    EXPECT_THAT(t.scanned().extremes, ElementsAre(16005, 14005, 12005, 10005, 8005, 6005, 4005, 2005,  // 10 ... 3
                                                  19999, 4095, 4096, 1))
        << name(type);
  }
}

TEST(Scan, OfEqualMagnitudesTheFirstAreTakenAndIntegersHaveNoExtremes) {
  EXPECT_THAT(Stored(DType::f32, {100}).scanned().extremes, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_THAT(Stored(DType::i32, {100}).scanned().extremes, IsEmpty());
}

// 165 is 0xa5, the poison of u8, and a valid result.
TEST(Scan, AnIntegerThatLooksLikePoisonIsASuspectOnly) {
  Stored t(DType::u8, {100});
  store(DType::u8, t.at(5), 165.0);
  const Scan found = t.scanned();
  EXPECT_EQ(found.unwritten, 0);
  EXPECT_THAT(found.suspects, ElementsAre(5));
}

TEST(Scan, GapsBetweenTheRowsOfAPartAreIgnored) {
  Stored t(DType::bf16, {4, 8}, Layout{{32, 1}, {}});
  for (std::size_t i = 0; i < t.bytes.size(); i += 2) store_poison(DType::bf16, t.bytes.data() + i);
  for (std::int64_t i = 0; i < 32; ++i) store(DType::bf16, t.at(i), 1.0);
  EXPECT_EQ(t.scanned().unwritten, 0);
  store_poison(DType::bf16, t.at(11));
  EXPECT_EQ(t.scanned().first_unwritten, 11);
}

TEST(Scan, StridedAndBlockedLayoutsReportLogicalIndices) {
  Stored columns(DType::f32, {3, 5}, Layout{{1, 3}, {}});
  store_poison(DType::f32, columns.at(7));
  EXPECT_EQ(columns.scanned().first_unwritten, 7);
  Stored blocked(DType::f32, {5, 7}, Layout::blocked({5, 7}, {{1, 4}}));
  store_poison(DType::f32, blocked.at(20));
  EXPECT_THAT(blocked.scanned().suspects, ElementsAre(20));
}

TEST(Scan, CountsAllButKeepsTheFirstFew) {
  Stored t(DType::f32, {5000});
  for (std::int64_t i = 0; i < 5000; ++i) store_poison(DType::f32, t.at(i));
  const Scan found = t.scanned(3);
  EXPECT_EQ(found.unwritten, 5000);
  EXPECT_THAT(found.suspects, ElementsAre(0, 1, 2));
}

TEST(Scan, AnEmptyTensorHasNothingToFind) {
  Stored t(DType::f32, {0, 8});
  EXPECT_THAT(t.scanned().suspects, IsEmpty());
}

std::vector<std::int64_t> chosen(const UnitChoice& choice) { return choice.slice(0, choice.size()); }

// A unit of one element costs its textbook's work and 16 for the comparison: 4 + 16 here.
TEST(Sample, EverythingIsJudgedWhereItFitsTheBudget) {
  const UnitChoice choice = choose_units({1000, 1, 4.0, {}}, 20'000.0, {}, 1);
  EXPECT_TRUE(choice.everything());
  EXPECT_EQ(choice.size(), 1000);
  EXPECT_EQ(choice.slice(10, 3), (std::vector<std::int64_t>{10, 11, 12}));
}

// 100 of 10000 units are paid for: strata of 100 units each.
TEST(Sample, EveryStratumGivesOneUnit) {
  const std::vector<std::int64_t> units = chosen(choose_units({10000, 1, 4.0, {}}, 2000.0, {}, 7));
  ASSERT_EQ(units.size(), 100U);
  for (std::size_t i = 0; i < units.size(); ++i) EXPECT_EQ(units[i] / 100, static_cast<std::int64_t>(i));
}

TEST(Sample, UnevenStrataStillCoverEveryUnitOnce) {
  // 10007 units in 100 strata: seven of 101 units, then 93 of 100.
  const std::vector<std::int64_t> units = chosen(choose_units({10007, 1, 4.0, {}}, 2000.0, {}, 7));
  ASSERT_EQ(units.size(), 100U);
  for (std::int64_t i = 0; i < 100; ++i) {
    const std::int64_t first = i * 100 + std::min<std::int64_t>(i, 7);
    EXPECT_GE(units[static_cast<std::size_t>(i)], first);
    EXPECT_LT(units[static_cast<std::size_t>(i)], first + (i < 7 ? 101 : 100));
  }
}

TEST(Sample, LandmarksAndSuspectsAreAlwaysIn) {
  const std::vector<std::int64_t> units =
      chosen(choose_units({100000, 1, 100.0, {0, 63, 64, 99999}}, 1e4, {777, 777, 888}, 3));
  EXPECT_THAT(units, IsSupersetOf({0, 63, 64, 777, 888, 99999}));
  EXPECT_TRUE(std::is_sorted(units.begin(), units.end()));
  EXPECT_EQ(std::adjacent_find(units.begin(), units.end()), units.end());
}

TEST(Sample, EvenAnEmptyBudgetJudgesAFewUnits) { EXPECT_GE(choose_units({100000, 1, 1e9, {}}, 0.0, {}, 3).size(), 16); }

TEST(Sample, TheKeyMovesTheSample) {
  const CheckUnits units{100000, 1, 1.0, {}};
  EXPECT_EQ(chosen(choose_units(units, 1000.0, {}, 3)), chosen(choose_units(units, 1000.0, {}, 3)));
  EXPECT_NE(chosen(choose_units(units, 1000.0, {}, 3)), chosen(choose_units(units, 1000.0, {}, 4)));
}

TEST(Sample, SuspectsBeyondTheBudgetAreCutToTheFirst) {
  std::vector<std::int64_t> suspects;
  for (std::int64_t i = 0; i < 1000; ++i) suspects.push_back(50000 + i);
  const UnitChoice choice = choose_units({100000, 1, 1e6 - 16, {}}, 100e6, suspects, 3);
  EXPECT_LE(choice.size(), 200);
  EXPECT_THAT(chosen(choice), IsSupersetOf({50000, 50099}));
}

}  // namespace scan_test
}  // namespace gpubench

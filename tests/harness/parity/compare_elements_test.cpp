#include "harness/parity/compare_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/core/hash.h"
#include "harness/parity/judge.h"
#include "harness/parity/rounding.h"

namespace gpubench {

namespace compare_test {

using testing::Contains;
using testing::IsEmpty;
using testing::StrEq;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");
constexpr DType every_type[] = {DType::f64,     DType::f32,     DType::f16, DType::bf16,
                                DType::f8_e4m3, DType::f8_e5m2, DType::i32, DType::u8};

TEST(Rounding, TheFastWayAgreesWithTheGeneralOneOnAnyBits) {
  for (std::uint64_t i = 0; i < 2'000'000; ++i) {
    const std::uint64_t bits = hash_at(1, i);
    // Half of them with an exponent near those of bf16 and f32, which random bits rarely have.
    const std::uint64_t near = (bits & 0x800fffffffffffffULL) | (880ULL + (bits >> 52U) % 290ULL) << 52U;
    const auto value = std::bit_cast<double>(i % 2 == 0 ? bits : near);
    if (std::isnan(value)) continue;
    for (const DType type : {DType::bf16, DType::f32})
      ASSERT_EQ(rounded(type, value), round_to(type, value)) << name(type) << " " << value;
  }
}

TEST(Rounding, EveryTieOfBf16GoesToTheEvenNeighbour) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const double low = std::bit_cast<float>(bits << 16U);
    const double high = std::bit_cast<float>((bits + 1) << 16U);
    const double middle = 0.5 * (low + high);
    ASSERT_EQ(rounded(DType::bf16, middle), bits % 2 == 0 ? low : high);
    ASSERT_EQ(rounded(DType::bf16, -middle), bits % 2 == 0 ? -low : -high);
  }
}

TEST(Rounding, HalfAnUlpIsHalfTheDistanceToTheNextNumber) {
  EXPECT_EQ(half_ulp(DType::bf16, 1.0), 0x1p-8);
  EXPECT_EQ(half_ulp(DType::bf16, -1.99), 0x1p-8);
  EXPECT_EQ(half_ulp(DType::f32, 3.0), 0x1p-23);
  EXPECT_EQ(half_ulp(DType::f32, 0.0), 0x1p-150);  // subnormals are 2^-149 apart
  EXPECT_EQ(half_ulp(DType::f16, 1e-6), 0x1p-25);
  EXPECT_EQ(half_ulp(DType::i32, 12345.0), 0.5);
  EXPECT_GT(half_ulp(DType::f64, 0.0), 0.0);
}

// Neighbours of 1 in bf16: 0.99609375 and 1.0078125.
TEST(Accepts, WithoutABoundOnlyTheRoundedValue) {
  EXPECT_TRUE(accepts({1.003, 0.0}, DType::bf16, 1.0));
  EXPECT_FALSE(accepts({1.003, 0.0}, DType::bf16, 1.0078125));
  EXPECT_FALSE(accepts({1.003, 0.0}, DType::bf16, 0.99609375));
  EXPECT_TRUE(accepts({1.0078125, 0.0}, DType::bf16, 1.0078125));
}

// 1.003 + 0.001 = 1.004 lies above the tie 1.00390625, so the neighbour above is reached; 1.003 - 0.001 stays at 1.
TEST(Accepts, TheIntervalEndsWhereItsEndsRound) {
  EXPECT_TRUE(accepts({1.003, 0.001}, DType::bf16, 1.0078125));
  EXPECT_TRUE(accepts({1.003, 0.001}, DType::bf16, 1.0));
  EXPECT_FALSE(accepts({1.003, 0.001}, DType::bf16, 0.99609375));
  EXPECT_FALSE(accepts({1.003, 0.0008}, DType::bf16, 1.0078125));
}

TEST(Accepts, NaNNeverForAFiniteOrInfiniteReference) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e5m2, DType::i32, DType::u8}) {
    for (const double value : {0.0, 1.0, -3.0, infinity, -infinity}) {
      for (const double bound : {0.0, 1.0, 1e300, infinity, not_a_number})
        EXPECT_FALSE(accepts({value, bound}, type, not_a_number)) << name(type) << " " << value << " " << bound;
    }
  }
}

TEST(Accepts, NothingWhenTheBoundIsNaN) {
  for (const DType type : every_type) {
    for (const double got : {0.0, 1.0, infinity, not_a_number})
      EXPECT_FALSE(accepts({1.0, not_a_number}, type, got)) << name(type);
  }
}

TEST(Accepts, AReferenceThatIsNaNNeedsNaN) {
  EXPECT_TRUE(accepts({not_a_number, 0.0}, DType::f32, not_a_number));
  EXPECT_FALSE(accepts({not_a_number, 1e30}, DType::f32, 0.0));
  EXPECT_FALSE(accepts({not_a_number, 0.0}, DType::f32, infinity));
}

TEST(Accepts, AnInfiniteReferenceNeedsThatInfinity) {
  EXPECT_TRUE(accepts({infinity, 0.0}, DType::f32, infinity));
  EXPECT_FALSE(accepts({infinity, 0.0}, DType::f32, -infinity));
  EXPECT_FALSE(accepts({infinity, infinity}, DType::f32, 3.4e38));
}

TEST(Accepts, OverflowOfTheStorageTypeIsWhatRoundingGives) {
  EXPECT_TRUE(accepts({1e39, 0.0}, DType::f32, infinity));
  EXPECT_FALSE(accepts({1e39, 0.0}, DType::f32, 0x1.fffffep127));
  EXPECT_FALSE(accepts({1.0, 0.5}, DType::f32, infinity));
  EXPECT_TRUE(accepts({500.0, 0.0}, DType::f8_e4m3, not_a_number));  // e4m3 has no infinity
  EXPECT_FALSE(accepts({440.0, 1.0}, DType::f8_e4m3, not_a_number));
  EXPECT_TRUE(accepts({460.0, 10.0}, DType::f8_e4m3, 448.0));
}

TEST(Accepts, AnOverflowOfSixteenAndEightBitsIsAnInfinityUnlessTheTextbookClampsIt) {
  EXPECT_TRUE(accepts({70000.0, 0.0}, DType::f16, infinity));
  EXPECT_FALSE(accepts({70000.0, 0.0}, DType::f16, 65504.0));   // saturated where rounding was promised
  EXPECT_TRUE(accepts({65500.0, 30.0}, DType::f16, infinity));  // from 65520 on
  EXPECT_TRUE(accepts({65500.0, 30.0}, DType::f16, 65472.0));
  EXPECT_FALSE(accepts({65500.0, 10.0}, DType::f16, infinity));
  EXPECT_TRUE(accepts({65536.0, 0.0}, DType::f8_e5m2, infinity));
  EXPECT_FALSE(accepts({57344.0, 0.0}, DType::f8_e5m2, infinity));
  EXPECT_FALSE(accepts({448.0, 0.0}, DType::f8_e4m3, not_a_number));
}

TEST(Accepts, TheSignOfZeroIsIgnored) {
  EXPECT_TRUE(accepts({0.0, 0.0}, DType::f32, -0.0));
  EXPECT_FALSE(accepts({0.0, 0.0}, DType::f32, 0x1p-149));
}

TEST(Accepts, IntegersMustBeEqual) {
  EXPECT_TRUE(accepts({7.0, 0.0}, DType::i32, 7.0));
  EXPECT_FALSE(accepts({7.0, 0.0}, DType::i32, 8.0));
  EXPECT_FALSE(accepts({7.0, 0.0}, DType::u8, 6.0));
}

// In f32 around 1 half an ulp is 2^-24: negligible.
TEST(ErrorOverBound, IsTheErrorInUnitsOfTheBound) {
  EXPECT_NEAR(error_over_bound({1.0, 0.25}, DType::f32, 1.125), 0.5, 1e-6);
  EXPECT_NEAR(error_over_bound({1.0, 0.25}, DType::f32, 1.5), 2.0, 1e-6);
  // Between 1 and 1.0078125, neighbours in bf16, lies 1.00390625: from 1.003 rounding explains 1; from 1.005 it leaves
  // 0.00109375.
  EXPECT_EQ(error_over_bound({1.003, 0.25}, DType::bf16, 1.0), 0.0);
  EXPECT_NEAR(error_over_bound({1.005, 0.25}, DType::bf16, 1.0), 0.00109375 / 0.25, 1e-12);
  EXPECT_EQ(error_over_bound({1.0, 0.0}, DType::f32, 1.0), 0.0);
  EXPECT_EQ(error_over_bound({1.0, 0.0}, DType::bf16, 1.0078125), 2.0);  // one ulp off is twice half an ulp
}

TEST(ErrorOverBound, WithABoundOfNaNIsNothingOnlyForTheNaNOrInfinityThatIsRight) {
  EXPECT_EQ(error_over_bound({not_a_number, not_a_number}, DType::f32, not_a_number), 0.0);
  EXPECT_EQ(error_over_bound({infinity, not_a_number}, DType::f32, infinity), 0.0);
  EXPECT_EQ(error_over_bound({infinity, not_a_number}, DType::f32, -infinity), infinity);
  EXPECT_EQ(error_over_bound({1.0, not_a_number}, DType::f32, 1.0), infinity);
}

TEST(ErrorOverBound, IsInfiniteWhereClassesDiffer) {
  EXPECT_EQ(error_over_bound({1.0, 0.25}, DType::f32, not_a_number), infinity);
  EXPECT_EQ(error_over_bound({1.0, 0.25}, DType::f32, infinity), infinity);
  EXPECT_EQ(error_over_bound({not_a_number, 0.25}, DType::f32, 1.0), infinity);
  EXPECT_EQ(error_over_bound({infinity, 0.25}, DType::f32, 1.0), infinity);
  EXPECT_EQ(error_over_bound({not_a_number, 0.25}, DType::f32, not_a_number), 0.0);
  EXPECT_EQ(error_over_bound({1.0, not_a_number}, DType::f32, 1.0), infinity);
}

// Candidates are a value's neighbours in the type; measure and verdict must agree for any bound.
TEST(ErrorOverBound, IsAtMostOneExactlyForWhatIsAccepted) {
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double value = std::ldexp(1.0 + static_cast<double>(hash_at(2, i) % 4096) / 4096.0, static_cast<int>(i % 3));
    const double bound = static_cast<double>(hash_at(3, i) % 1024) * 0x1p-15;
    const double centre = round_to(DType::bf16, value);
    for (int step = -6; step <= 6; ++step) {
      const double got = round_to(DType::bf16, centre * (1.0 + step * 0x1p-7));
      ASSERT_EQ(error_over_bound({value, bound}, DType::bf16, got) <= 1.0, accepts({value, bound}, DType::bf16, got))
          << value << " +- " << bound << " got " << got;
    }
  }
}

std::vector<CheckedElement> panel_of(std::initializer_list<Expected> judged, DType type) {
  std::vector<CheckedElement> panel;
  for (const Expected& j : judged)
    panel.push_back({static_cast<std::int64_t>(panel.size()), j, round_to(type, j.value)});
  return panel;
}

// compare() has a fast path for most elements.
TEST(Compare, AgreesWithAComparisonOfEachElement) {
  for (const DType type : every_type) {
    std::vector<Expected> judged;
    std::vector<double> got;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t drawn = hash_at(7, i);
      const double value = drawn % 16 == 0 ? 0.0 : std::ldexp(static_cast<double>(drawn % 4001) - 2000.0, -7);
      const double bound = i % 5 == 0 ? 0.0 : std::ldexp(1.0 + static_cast<double>(drawn % 7), -4);
      const double off = i % 1000 < 990 ? 0.9 : 3.0;
      const double at = value + off * bound * std::sin(static_cast<double>(i));
      judged.push_back({value, i % 97 == 0 ? not_a_number : bound, i % 3 == 0});
      got.push_back(i % 331 == 0 ? not_a_number : i % 7 == 0 ? -round_to(type, at) : round_to(type, at));
    }
    Tally tally;
    compare(0, judged, type, got, tally);
    std::int64_t bad = 0;
    double worst = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      bad += accepts(judged[i], type, got[i]) ? 0 : 1;
      worst = std::max(worst, error_over_bound(judged[i], type, got[i]));
    }
    EXPECT_EQ(tally.bad, bad) << name(type);
    EXPECT_EQ(static_cast<std::int64_t>(tally.wrong.size()), bad) << name(type);
    EXPECT_EQ(tally.error_over_bound, worst) << name(type);
  }
}

TEST(Compare, FindsTheWorstElementWithinTheBounds) {
  std::vector<Expected> judged;
  std::vector<double> got;
  double worst = 0.0;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    const double value = 1.0 + static_cast<double>(hash_at(9, i) % 1000);
    judged.push_back({value, 0x1p-10 * value});
    got.push_back(round_to(DType::f32, value + 0x1p-10 * value * std::sin(static_cast<double>(hash_at(8, i) % 4096))));
    worst = std::max(worst, error_over_bound(judged.back(), DType::f32, got.back()));
  }
  Tally tally;
  compare(0, judged, DType::f32, got, tally);
  EXPECT_EQ(tally.bad, 0);
  EXPECT_EQ(tally.error_over_bound, worst);
  EXPECT_GT(worst, 0.99);
}

TEST(Mutations, EveryOneIsRejectedWhereBoundsAreTight) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const MutationReport report = mutate(panel_of({{1.5, 1e-3}, {-0.25, 1e-4}, {0.0, 0.0}}, type), type);
    EXPECT_EQ(report.tried, 5) << name(type);
    EXPECT_EQ(report.rejected, 5) << name(type);
    EXPECT_THAT(report.accepted, IsEmpty()) << name(type);
  }
}

TEST(Mutations, AZeroReferenceWithATightBoundIsProvenByNaNAndStep) {
  const MutationReport report = mutate(panel_of({{0.0, 0.0}, {0.0, 1e-9}}, DType::f32), DType::f32);
  EXPECT_EQ(report.tried, 2);
  EXPECT_EQ(report.rejected, 2);
}

TEST(Mutations, AnInfiniteBoundIsDetected) {
  EXPECT_THAT(mutate(panel_of({{1.0, infinity}}, DType::f32), DType::f32).accepted,
              Contains(StrEq("a step beyond the bound")));
}

TEST(Mutations, BoundsThatHideEveryReferenceAreDetected) {
  const MutationReport report = mutate(panel_of({{1.0, 2.0}, {-0.5, 1.0}}, DType::f32), DType::f32);
  EXPECT_THAT(report.accepted, Contains(StrEq("zeros")));
  EXPECT_LT(report.rejected, report.tried);
}

// 8 in f32 has the exponent 130, 0b10000010; flipping the three bits below the sign gives 98, which makes it 2^-29.
TEST(Mutations, BitsOfALaneAreDetectedWhereItsMostSensitiveElementHidesThem) {
  std::vector<CheckedElement> panel = panel_of({{8.0, 1e-3}, {8.0, 9.0}}, DType::f32);
  panel[1].linear = 33 + 1;
  EXPECT_THAT(mutate(panel, DType::f32).accepted, Contains(StrEq("three bits of a lane")));
  panel[0].linear = 2;  // of the same lane
  EXPECT_THAT(mutate(panel, DType::f32).accepted, IsEmpty());
}

TEST(Mutations, OneSensitiveElementIsEnoughForZerosAndSigns) {
  EXPECT_THAT(mutate(panel_of({{1.0, 2.0}, {-0.5, 0.1}}, DType::f32), DType::f32).accepted, IsEmpty());
}

TEST(Mutations, AStepAtTheEndOfTheRangeGoesTheOtherWay) {
  EXPECT_THAT(mutate(panel_of({{255.0, 0.0}, {0.0, 0.0}}, DType::u8), DType::u8).accepted, IsEmpty());
  EXPECT_THAT(mutate(panel_of({{2147483647.0, 0.0}}, DType::i32), DType::i32).accepted, IsEmpty());
  EXPECT_THAT(mutate(panel_of({{0x1.fffffep127, 0x1p100}}, DType::f32), DType::f32).accepted, IsEmpty());
  EXPECT_THAT(mutate(panel_of({{448.0, 1.0}}, DType::f8_e4m3), DType::f8_e4m3).accepted, IsEmpty());
}

TEST(Mutations, WhereTheReferenceIsNaNANumberIsRejected) {
  const MutationReport report = mutate(panel_of({{not_a_number, 0.0}}, DType::f32), DType::f32);
  EXPECT_EQ(report.tried, 1);
  EXPECT_EQ(report.rejected, 1);
}

}  // namespace compare_test

namespace difference_test {

using testing::ElementsAre;
using testing::IsEmpty;

struct Pair {
  TensorSpec spec;
  std::vector<std::byte> got, expected;

  Pair(DType type, Shape shape, Layout layout) : spec(tensor("t", type, std::move(shape), Role::activation)) {
    spec.layout = std::move(layout);
    got.resize(static_cast<std::size_t>(spec.bytes()));
    for (std::size_t i = 0; i < got.size(); i += size_of(type)) store(type, got.data() + i, 1.0);
    expected = got;
  }
  void set(std::int64_t linear, double value) {
    store(spec.dtype,
          got.data() + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype)), value);
  }
  [[nodiscard]] ElementDifferences compared(std::int64_t most = 1000) const {
    return difference(TensorView(spec, got.data()), TensorView(spec, expected.data()), most);
  }
};

Pair dense(DType type, std::int64_t elements) {
  const Shape shape{elements};
  return {type, shape, Layout::row_major(shape)};
}

TEST(ElementDifferences, EqualTensorsHaveNone) {
  EXPECT_EQ(dense(DType::f32, 10000).compared().elements, 0);
  EXPECT_THAT(dense(DType::f32, 10000).compared().largest, IsEmpty());
}

// 4095 and 4096 are on both sides of a stretch's border.
TEST(ElementDifferences, FindsAllWithNaNFirstThenTheLargest) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Pair pair = dense(type, 10000);
    pair.set(4095, 3.0);
    pair.set(4096, -7.0);
    pair.set(0, 1.5);
    pair.set(9999, std::nan(""));

    EXPECT_EQ(pair.compared().elements, 4) << name(type);
    EXPECT_THAT(pair.compared().largest, ElementsAre(9999, 4096, 4095, 0)) << name(type);
    EXPECT_THAT(pair.compared(2).largest, ElementsAre(9999, 4096)) << name(type);
    EXPECT_EQ(pair.compared(2).elements, 4) << name(type);
  }
}

TEST(ElementDifferences, CompareBitsSoZeroAndMinusZeroDiffer) {
  Pair pair = dense(DType::f32, 8);
  pair.set(5, 0.0);
  pair.expected = pair.got;
  pair.set(5, -0.0);

  EXPECT_THAT(pair.compared().largest, ElementsAre(5));
}

// Rows of three at a distance of five.
TEST(ElementDifferences, FollowsTheLayoutAndIgnoresItsGaps) {
  Pair pair(DType::f32, {4, 3}, Layout{{5, 1}, {}});
  pair.set(7, 2.0);
  pair.got[3 * sizeof(float)] ^= std::byte{1};  // element 3 of the storage is a gap

  EXPECT_THAT(pair.compared().largest, ElementsAre(7));
}

}  // namespace difference_test

}  // namespace gpubench

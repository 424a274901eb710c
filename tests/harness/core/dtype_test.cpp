#include "harness/core/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double number_of(DType type, std::uint64_t bits) {
  std::array<std::byte, 8> element{};
  std::memcpy(element.data(), &bits, sizeof bits);
  return load(type, element.data());
}

std::uint64_t stored_bits(DType type, double value) {
  std::array<std::byte, 8> element{};
  store(type, element.data(), value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), sizeof bits);
  return bits;
}

// From IEEE 754-2019, OCP 8-bit floating point 1.0, and OCP microscaling formats 1.0 for e2m1; bf16 is half of f32.
struct Narrow {
  DType type;
  int bits;
  int fraction;
  int lowest_exponent;    // of the smallest normal
  std::uint64_t largest;  // bits of the largest finite number
  double largest_value;
  bool has_infinity;
};
const std::array<Narrow, 5> narrow_types{{
    {DType::f16, 16, 10, -14, 0x7bff, 65504.0, true},
    {DType::bf16, 16, 7, -126, 0x7f7f, 0x1.fep127, true},
    {DType::f8_e4m3, 8, 3, -6, 0x7e, 448.0, false},
    {DType::f8_e5m2, 8, 2, -14, 0x7b, 57344.0, true},
    {DType::f4_e2m1, 4, 1, 0, 0x7, 6.0, false},
}};

TEST(DType, TheLargestFiniteNumbersAreThoseOfTheSpecifications) {
  for (const Narrow& n : narrow_types) {
    EXPECT_EQ(number_of(n.type, n.largest), n.largest_value) << name(n.type);
    EXPECT_EQ(largest_finite(n.type), n.largest_value) << name(n.type);
  }
  EXPECT_EQ(largest_finite(DType::f4_e2m1), 6.0);
}

// Positive numbers of a format are consecutive bit patterns: 2^fraction equal steps per binade, twice in the first
// binade (subnormals). This rebuilds the sequence without decoding bits.
TEST(DType, EveryPatternOfNarrowTypesIsTheNextStepUpFromTheOneBefore) {
  for (const Narrow& n : narrow_types) {
    double value = 0.0;
    double step = std::ldexp(1.0, n.lowest_exponent - n.fraction);
    for (std::uint64_t bits = 0; bits <= n.largest; ++bits) {
      ASSERT_EQ(number_of(n.type, bits), value) << name(n.type) << " bits " << bits;
      ASSERT_EQ(number_of(n.type, bits | 1ULL << (n.bits - 1)), -value) << name(n.type) << " bits " << bits;
      value += step;
      const std::uint64_t per_binade = 1ULL << n.fraction;
      if ((bits + 1) % per_binade == 0 && bits + 1 > per_binade) step *= 2.0;
    }
  }
}

TEST(DType, EveryFinitePatternSurvivesLoadAndStore) {
  for (const Narrow& n : narrow_types) {
    for (std::uint64_t bits = 0; bits <= n.largest; ++bits) {
      const std::uint64_t negative = bits | 1ULL << (n.bits - 1);
      ASSERT_EQ(stored_bits(n.type, number_of(n.type, bits)), bits) << name(n.type);
      ASSERT_EQ(stored_bits(n.type, number_of(n.type, negative)), negative) << name(n.type);
    }
  }
}

TEST(DType, EveryPatternBeyondTheLargestIsInfinityOrNaN) {
  for (const Narrow& n : narrow_types) {
    for (std::uint64_t bits = n.largest + 1; bits < 1ULL << (n.bits - 1); ++bits) {
      const double value = number_of(n.type, bits);
      if (n.has_infinity && bits == n.largest + 1) {
        EXPECT_EQ(value, infinity) << name(n.type);
      } else {
        ASSERT_TRUE(std::isnan(value)) << name(n.type) << " bits " << bits;
      }
    }
  }
}

TEST(DType, MidpointsRoundToTheEvenNeighbourAndOthersToTheNearerOne) {
  for (const Narrow& n : narrow_types) {
    for (std::uint64_t bits = 0; bits < n.largest; ++bits) {
      const double low = number_of(n.type, bits);
      const double high = number_of(n.type, bits + 1);
      const double middle = 0.5 * (low + high);
      const double even = bits % 2 == 0 ? low : high;
      ASSERT_EQ(round_to(n.type, middle), even) << name(n.type) << " above bits " << bits;
      ASSERT_EQ(round_to(n.type, -middle), -even) << name(n.type) << " above bits " << bits;
      ASSERT_EQ(round_to(n.type, std::nextafter(middle, infinity)), high) << name(n.type);
      ASSERT_EQ(round_to(n.type, std::nextafter(middle, 0.0)), low) << name(n.type);
    }
  }
}

TEST(DType, RoundingPastTheLargestOverflows) {
  // The tie halfway to the next step goes up, because the largest number of each format is odd (e4m3: even, 0x7e).
  EXPECT_EQ(round_to(DType::f16, std::nextafter(65520.0, 0.0)), 65504.0);
  EXPECT_EQ(round_to(DType::f16, 65520.0), infinity);
  EXPECT_EQ(round_to(DType::f16, -65520.0), -infinity);
  EXPECT_EQ(round_to(DType::bf16, 0x1.ffp127), infinity);
  EXPECT_EQ(round_to(DType::f8_e5m2, 61440.0), infinity);
  EXPECT_EQ(round_to(DType::f8_e4m3, 464.0), 448.0);
  EXPECT_TRUE(std::isnan(round_to(DType::f8_e4m3, std::nextafter(464.0, infinity))));
  EXPECT_TRUE(std::isnan(round_to(DType::f8_e4m3, infinity)));
}

TEST(DType, F32RoundsTiesToEvenAndKeepsSubnormals) {
  EXPECT_EQ(round_to(DType::f32, 1.0 + 0x1p-24), 1.0);
  EXPECT_EQ(round_to(DType::f32, 1.0 + 0x3p-24), 1.0 + 0x1p-22);
  EXPECT_EQ(round_to(DType::f32, 0x1p-149), 0x1p-149);
  EXPECT_EQ(round_to(DType::f32, 0x1p-150), 0.0);
  EXPECT_EQ(round_to(DType::f32, 0x1.8p-149), 0x1p-148);
}

TEST(DType, NaNStaysNaNInEveryFloatingType) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    EXPECT_TRUE(std::isnan(round_to(type, std::nan("")))) << name(type);
    EXPECT_TRUE(std::isnan(number_of(type, stored_bits(type, std::nan(""))))) << name(type);
  }
}

TEST(DType, IntegersRoundToEvenAndSaturate) {
  EXPECT_EQ(round_to(DType::i32, 2.5), 2.0);
  EXPECT_EQ(round_to(DType::i32, -3.5), -4.0);
  EXPECT_EQ(round_to(DType::i32, 1e10), 2147483647.0);
  EXPECT_EQ(round_to(DType::i32, -1e10), -2147483648.0);
  EXPECT_EQ(round_to(DType::u8, -1.0), 0.0);
  EXPECT_EQ(round_to(DType::u8, 300.0), 255.0);
  EXPECT_EQ(number_of(DType::i32, 0xffffffffULL), -1.0);
  EXPECT_EQ(number_of(DType::u8, 0xffULL), 255.0);
}

TEST(DType, NaNIsStoredAsZeroInAnInteger) {
  for (const DType type : {DType::i32, DType::u8}) {
    std::array<std::byte, 4> bytes{};
    store(type, bytes.data(), 0, 7.0);
    store(type, bytes.data(), 0, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(load(type, bytes.data()), 0.0) << name(type);
  }
}

TEST(DType, UnitRoundoffIsHalfTheStepAboveOne) {
  for (const Narrow& n : narrow_types) {
    EXPECT_EQ(unit_roundoff(n.type), 0.5 * (number_of(n.type, stored_bits(n.type, 1.0) + 1) - 1.0)) << name(n.type);
    EXPECT_EQ(smallest_normal(n.type), number_of(n.type, 1ULL << n.fraction)) << name(n.type);
  }
  EXPECT_EQ(unit_roundoff(DType::f32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(DType::f64), 0x1p-53);
  EXPECT_EQ(unit_roundoff(DType::i32), 0.0);
}

TEST(DType, ARunReadsEveryStrideThElement) {
  const std::array<float, 7> values{0, 1, 2, 3, 4, 5, 6};
  std::array<double, 3> out{};

  load_run(DType::f32, reinterpret_cast<const std::byte*>(values.data()), 1, 2, 3, out.data());

  EXPECT_EQ(out, (std::array<double, 3>{1, 3, 5}));
}

TEST(DType, ElementsAreReadInAnyOrderAsOneByOne) {
  std::array<std::byte, 64> stored{};
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::byte>(37 * i + 11);
  const std::array<std::int64_t, 4> wanted{0, 3, 2, 7};
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2,
                           DType::f4_e2m1, DType::i32, DType::u8}) {
    std::array<double, 4> out{};
    load_each(type, stored.data(), wanted, out.data());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(out[i], load(type, stored.data(), wanted[i])) << name(type) << " " << wanted[i];
  }
}

TEST(DType, PoisonIsANaNThatNoStoreProduces) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::array<std::byte, 8> element{};
    store_poison(type, element.data());
    EXPECT_TRUE(is_poison(type, element.data())) << name(type);
    EXPECT_TRUE(std::isnan(load(type, element.data()))) << name(type);
    for (const double value : {std::nan(""), -std::nan(""), infinity, 0.0, 1.0}) {
      store(type, element.data(), value);
      EXPECT_FALSE(is_poison(type, element.data())) << name(type) << " " << value;
    }
  }
}

TEST(DType, PoisonChangesOnlyItsElement) {
  for (const DType type :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2, DType::i32, DType::u8}) {
    std::array<std::byte, 9> bytes{};
    store_poison(type, bytes.data());
    for (std::size_t i = size_of(type); i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0}) << name(type);
    EXPECT_TRUE(is_poison(type, bytes.data())) << name(type);
  }
}

// The sixteen numbers as specified, two per byte: the even index in the low half.
TEST(DType, TwoElementsOfFourBitsShareAByteAndLeaveEachOtherAlone) {
  const std::array<double, 8> numbers{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (std::uint64_t low = 0; low < 16; ++low) {
    for (std::uint64_t high = 0; high < 16; ++high) {
      const double even = low < 8 ? numbers[low] : -numbers[low - 8];
      const double odd = high < 8 ? numbers[high] : -numbers[high - 8];
      for (const bool even_first : {true, false}) {
        std::byte both{0xA5};

        store(DType::f4_e2m1, &both, even_first ? 0 : 1, even_first ? even : odd);
        store(DType::f4_e2m1, &both, even_first ? 1 : 0, even_first ? odd : even);

        ASSERT_EQ(both, static_cast<std::byte>(high << 4 | low));
        ASSERT_EQ(load(DType::f4_e2m1, &both, 0), even);
        ASSERT_EQ(load(DType::f4_e2m1, &both, 1), odd);
        ASSERT_EQ(load_bits(DType::f4_e2m1, &both, 1), high);
      }
    }
  }
}

TEST(DType, FourBitsSaturateBecauseTheyHaveNeitherInfinityNorNaN) {
  EXPECT_EQ(round_to(DType::f4_e2m1, 5.0), 4.0);  // a tie between 4 (fraction 0) and 6 (fraction 1)
  EXPECT_EQ(round_to(DType::f4_e2m1, 1e30), 6.0);
  EXPECT_EQ(round_to(DType::f4_e2m1, -infinity), -6.0);
  EXPECT_EQ(round_to(DType::f4_e2m1, std::nan("")), 6.0);
  EXPECT_TRUE(std::signbit(round_to(DType::f4_e2m1, -0.25)));  // a tie between -0 and -0.5
  EXPECT_EQ(round_to(DType::f4_e2m1, -0.25), 0.0);
}

TEST(DType, BytesAreCountedInBitsAndFilledUp) {
  EXPECT_EQ(bytes_of(DType::f4_e2m1, 0), 0);
  EXPECT_EQ(bytes_of(DType::f4_e2m1, 7), 4);
  EXPECT_EQ(bytes_of(DType::f4_e2m1, 8), 4);
  EXPECT_EQ(bytes_of(DType::f8_e4m3, 7), 7);
  EXPECT_EQ(bytes_of(DType::f64, 7), 56);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_THROW((void)size_of(DType::f4_e2m1), Unsupported);
}

TEST(DType, ElementsOfFourBitsAreCopiedFromAnyPlaceToAnyOther) {
  const std::array<std::byte, 4> from{std::byte{0x10}, std::byte{0x32}, std::byte{0x54}, std::byte{0x76}};
  std::array<std::byte, 3> to{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

  copy_elements(DType::f4_e2m1, from.data(), 1, 3, 3, to.data(), 1);  // elements 1, 4 and 7

  EXPECT_EQ(to, (std::array<std::byte, 3>{std::byte{0x1f}, std::byte{0x74}, std::byte{0xff}}));
}

}  // namespace
}  // namespace gpubench

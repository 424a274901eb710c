#include "harness/parity/compare_elements.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace gpubench {
namespace wrong_bits_test {

// The report on a tensor in which element i has the bits mask(i) flipped.
WrongBits flipped(const Shape& shape, DType type, const std::function<std::uint64_t(std::int64_t)>& mask) {
  const TensorSpec spec = tensor("y", type, shape, Role::activation);
  std::vector<std::byte> right(static_cast<std::size_t>(spec.bytes()));
  for (std::int64_t i = 0; i < shape.elements(); ++i) store(type, right.data(), i, 1.0 + static_cast<double>(i % 3));
  std::vector<std::byte> wrong = right;
  for (std::int64_t i = 0; i < shape.elements(); ++i) flip_bits(type, wrong.data(), i, mask(i));
  return wrong_bits(TensorView(spec, wrong.data()), TensorView(spec, right.data()));
}

TEST(WrongBits, OfEqualTensorsThereAreNone) {
  const WrongBits none = flipped({4, 8}, DType::f32, [](std::int64_t) { return 0U; });
  EXPECT_EQ(none.elements, 0);
  EXPECT_EQ(none.words, "");
}

TEST(WrongBits, OneElementHasABit) {
  const WrongBits one = flipped({4, 8}, DType::f32, [](std::int64_t i) { return i == 13 ? 1U << 30U : 0U; });
  EXPECT_EQ(one.elements, 1);
  EXPECT_EQ(one.first, 13);
  EXPECT_EQ(one.words, ", in bit 30");
}

TEST(WrongBits, ALaneOfAWarpIsNamedWithItsStrideAndItsBits) {
  const auto lane = [](std::int64_t i) { return i % 32 == 7 ? std::uint64_t{7} << 12U : 0U; };
  EXPECT_EQ(flipped({4, 128}, DType::f32, lane).words,
            ", every 32nd from there, all in lane 7 of 32, in bits 12-14 of each");
  // Four of them are too few to tell a lane from chance.
  EXPECT_EQ(flipped({1, 128}, DType::f32, lane).words, ", every 32nd from there, in bits 12-14 of each");
}

TEST(WrongBits, SeveralLanesWithDifferentBitsAreReported) {
  const auto lanes = [](std::int64_t i) {
    if (i % 32 != 4 && i % 32 != 5 && i % 32 != 9) return std::uint64_t{0};
    return i % 32 == 9 ? std::uint64_t{1} << 15U : std::uint64_t{3} << 1U;
  };
  EXPECT_EQ(flipped({8, 64}, DType::bf16, lanes).words,
            ", all 48 are in [0-7, 4-41], all in lanes 4-5, 9 of 32, in 1 to 2 bits of each, among 1-2, 15");
}

TEST(WrongBits, AStretchARowOfATileAndTheWholeTensorAreReported) {
  EXPECT_EQ(flipped({4, 64}, DType::f32, [](std::int64_t i) { return i >= 60 && i < 70 ? 1U : 0U; }).words,
            ", in a row, in bit 0 of each");
  EXPECT_EQ(flipped({64, 64}, DType::f32, [](std::int64_t i) { return i / 64 < 16 && i % 64 >= 48 ? 1U : 0U; }).words,
            ", all 256 are in [0-15, 48-63], in bit 0 of each");
  EXPECT_EQ(flipped({4, 8}, DType::f32, [](std::int64_t) { return 1U << 31U; }).words,
            ", all of it, in bit 31 of each");
}

TEST(WrongBits, AreThoseOfTypesNarrowerThanAByteToo) {
  const WrongBits one = flipped({3, 7}, DType::f4_e2m1, [](std::int64_t i) { return i == 20 ? 8U : 0U; });
  EXPECT_EQ(one.first, 20);
  EXPECT_EQ(one.words, ", in bit 3");
}

}  // namespace wrong_bits_test
}  // namespace gpubench

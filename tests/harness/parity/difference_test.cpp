#include "harness/parity/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpubench {
namespace difference_test {

using testing::ElementsAre;
using testing::IsEmpty;

// Two tensors that hold 1.0 everywhere.
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
  [[nodiscard]] Difference compared(std::int64_t most = 1000) const {
    return difference(TensorView(spec, got.data()), TensorView(spec, expected.data()), most);
  }
};

Pair dense(DType type, std::int64_t elements) {
  const Shape shape{elements};
  return {type, shape, Layout::row_major(shape)};
}

TEST(Difference, OfEqualTensorsIsNothing) {
  EXPECT_EQ(dense(DType::f32, 10000).compared().elements, 0);
  EXPECT_THAT(dense(DType::f32, 10000).compared().largest, IsEmpty());
}

// 4095 and 4096 lie on both sides of the border of a stretch.
TEST(Difference, FindsEveryElementAndPutsTheLargestFirstAndNaNBeforeAll) {
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

TEST(Difference, IsOfBitsSoThatZeroAndMinusZeroDiffer) {
  Pair pair = dense(DType::f32, 8);
  pair.set(5, 0.0);
  pair.expected = pair.got;
  pair.set(5, -0.0);

  EXPECT_THAT(pair.compared().largest, ElementsAre(5));
}

// Rows of three at a distance of five: the gaps belong to nobody.
TEST(Difference, FollowsTheLayoutAndLeavesItsGapsAlone) {
  Pair pair(DType::f32, {4, 3}, Layout{{5, 1}, {}});
  pair.set(7, 2.0);
  pair.got[3 * sizeof(float)] ^= std::byte{1};  // element 3 of the storage is a gap

  EXPECT_THAT(pair.compared().largest, ElementsAre(7));
}

}  // namespace difference_test
}  // namespace gpubench

// copy, transpose and reorder on the CUDA backend: bit-exact moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/cuda/kernels/elements.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/move_contract.h"

namespace gpubench {
namespace move_test {

using testing::emulated_contract;

TEST(CudaCopy, KeepsEveryBitOfEveryTypeAndSize) {
  testing::expect_copies(emulated_contract(), {0, 1, 7, 64, 333, 8200});
}

TEST(CudaCopy, OfAPartTouchesNothingElse) { testing::expect_copies_of_parts(emulated_contract()); }

TEST(CudaRepeatRows, OfEveryWidthIsExact) { testing::expect_repeated_rows(emulated_contract()); }

TEST(CudaTranspose, EveryOrderOfAxesOfEveryTypeIsExact) { testing::expect_transposes(emulated_contract()); }

TEST(CudaTranspose, KeepsNanPayloadsAndSubnormals) { testing::expect_transposes_to_keep_bits(emulated_contract()); }

TEST(CudaReorder, ToChannelsLastAndBackIsExact) {
  const Shape image{3, 20, 6, 5};
  testing::expect_reorders(emulated_contract(), image,
                           {Layout::row_major(image), Layout::ordered(image, std::vector<int>{0, 2, 3, 1})});
}

TEST(CudaReorder, ToBlocksIsUnsupportedWithTheLayout) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{32, 32}, Role::activation));
  (void)reorder(program, Layout::blocked(Shape{32, 32}, {{0, 16}}), "op", x);
  EXPECT_THAT(testing::refusal(emulated_contract().backend, program),
              ::testing::HasSubstr("expected strides without blocks"));
}

// [2, 3, 4] moved in order is one run of 24; with the outer axes swapped, the inner two of `to` stay separate.
TEST(CudaMove, NeighbouringAxesThatStayTogetherAreJoined) {
  cuda::MoveArgs whole;
  whole.axes = 3;
  whole.axis[0] = {2, 12, 12};
  whole.axis[1] = {3, 4, 4};
  whole.axis[2] = {4, 1, 1};
  const cuda::MoveArgs joined = simplified(whole);
  EXPECT_EQ(joined.axes, 1);
  EXPECT_EQ(joined.axis[0].extent, 24);

  cuda::MoveArgs swapped = whole;
  swapped.axis[0] = {2, 12, 4};
  swapped.axis[1] = {3, 4, 8};
  const cuda::MoveArgs kept = simplified(swapped);
  EXPECT_EQ(kept.axes, 3);
  EXPECT_EQ(kept.axis[0].extent, 3);
  EXPECT_EQ(kept.axis[1].extent, 2);
  EXPECT_EQ(kept.axis[2].extent, 4);
}

}  // namespace move_test
}  // namespace gpubench

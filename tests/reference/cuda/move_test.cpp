// copy, transpose and reorder on the CUDA backend's kernels: the same bits elsewhere.
#include <gtest/gtest.h>

#include <tuple>

#include "harness/core/error.h"
#include "reference/cuda/kernels/move.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace move_test {

using testing::ProgramRun;
using testing::run_in_every_order;

const std::vector<DType> all_types = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8};

TEST(CudaCopy, KeepsEveryBitOfEveryTypeAndSize) {
  for (const DType dtype : all_types) {
    for (const std::int64_t n : {0, 1, 7, 64, 333, 8200}) {
      Program program;
      const ValueId x = program.add(tensor("x", dtype, Shape{n}, Role::activation));
      (void)copy(program, "op", x);
      const auto fill = [&](ProgramRun& run) { run.set_random(x, 7, 100.0); };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", " << n;
    }
  }
}

TEST(CudaCopy, OfAPartTouchesNothingElse) {
  for (const std::int64_t first : {0, 3, 8}) {
    for (const std::int64_t columns : {16, 13}) {
      Program program;
      const TensorSpec whole = tensor("whole", DType::bf16, Shape{5, 7, 40}, Role::activation);
      TensorSpec part = whole;
      part.name = "part";
      part.shape = Shape{5, 7, columns};
      const ValueId source = program.add(whole);
      const ValueId x = program.part(source, part, first);
      (void)copy(program, "op", x);
      const auto fill = [&](ProgramRun& run) { run.set_random(source, 7, 100.0); };

      EXPECT_EQ(run_in_every_order(program, fill), "") << first << ", " << columns;
    }
  }
}

TEST(CudaRepeatRows, OfEveryWidthIsExact) {
  for (const DType dtype : all_types) {
    for (const auto& [rows, count, n] : {std::tuple{3, 5, 17}, {9, 16, 64}, {40, 9, 1}, {1, 12, 16}, {4, 1, 8}}) {
      for (const std::int64_t first : {0, 7}) {
        Program program;
        const std::int64_t width = n + 8;
        const ValueId x = program.add(tensor("x", dtype, Shape{rows, 1, n}, Role::activation));
        const ValueId whole = program.reserve(tensor("whole", dtype, Shape{rows, count, width}, Role::activation));
        TensorSpec part = tensor("y", dtype, Shape{rows, count, n}, Role::activation);
        part.layout.strides = {count * width, width, 1};
        repeat_rows_into(program, Math{}, "op", x, program.part(whole, part, first));
        const auto fill = [&](ProgramRun& run) { run.set_random(x, 7, 100.0); };

        EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", " << rows << " " << count << " " << n;
      }
    }
  }
}

struct Permuted {
  Shape shape;
  std::vector<int> permutation;
};

TEST(CudaTranspose, EveryOrderOfAxesOfEveryTypeIsExact) {
  const std::vector<Permuted> cases = {{{1, 1}, {1, 0}},
                                       {{64, 128}, {1, 0}},
                                       {{66, 130}, {1, 0}},
                                       {{33, 65}, {1, 0}},
                                       {{5, 100}, {1, 0}},
                                       {{3, 34, 70}, {0, 2, 1}},
                                       {{7, 34, 16}, {1, 0, 2}},
                                       {{4, 10, 3, 6}, {3, 1, 0, 2}},
                                       {{2, 12, 9, 64}, {0, 2, 1, 3}},
                                       {{40, 9, 36}, {2, 1, 0}}};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (const Permuted& c : cases) {
      Program program;
      const ValueId x = program.add(tensor("x", dtype, c.shape, Role::activation));
      (void)transpose(program, {c.permutation}, "op", x);
      const auto fill = [&](ProgramRun& run) { run.set_random(x, 7, 100.0); };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", " << c.shape.to_string();
    }
  }
}

TEST(CudaReorder, ToChannelsLastAndBackIsExact) {
  const Shape shape{3, 20, 6, 5};
  const int channels_last[] = {0, 2, 3, 1};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool back : {false, true}) {
      Program program;
      TensorSpec from = tensor("x", dtype, shape, Role::activation);
      if (back) from.layout = Layout::ordered(shape, channels_last);
      const ValueId x = program.add(from);
      (void)reorder(program, back ? Layout::row_major(shape) : Layout::ordered(shape, channels_last), "op", x);
      const auto fill = [&](ProgramRun& run) { run.set_random(x, 7, 100.0); };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", back: " << back;
    }
  }
}

TEST(CudaReorder, ToBlocksIsUnsupportedWithTheLayout) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{32, 32}, Role::activation));
  (void)reorder(program, Layout::blocked(Shape{32, 32}, {{0, 16}}), "op", x);
  ProgramRun run(*backend, program);

  EXPECT_THROW(run.run(), Unsupported);
}

// [2, 3, 4] moved as it lies is one run of 24; with the outer two axes swapped, the inner two of `to` stay apart.
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

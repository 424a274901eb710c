// transpose and reorder move every element, bit for bit, to where the layout says, and nothing else.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace reorder_test {

using testing::ProgramRun;
using testing::shared_backend;

// 0, 1, 2, ... folded into what the type holds exactly, so that neighbours always differ.
std::vector<double> counting(std::int64_t elements, DType dtype) {
  const std::int64_t distinct = dtype == DType::bf16 || dtype == DType::u8 ? 251 : 65521;
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(static_cast<std::int64_t>(i) % distinct);
  return values;
}

void expect_transposed(const Shape& shape, const std::vector<int>& permutation, DType dtype) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, shape, Role::activation));
  const ValueId y = transpose(program, {permutation}, "transpose", x);
  ProgramRun run(shared_backend(), program);
  run.set(x, counting(shape.elements(), dtype));
  run.run();
  const std::vector<double> in = run.get(x), out = run.get(y);
  const Shape& to = program.spec(y).shape;
  for (std::int64_t linear = 0; linear < to.elements(); ++linear) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(to.rank()));
    std::int64_t rest = linear;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(permutation[static_cast<std::size_t>(axis)])] = rest % to[axis];
      rest /= to[axis];
    }
    std::int64_t from = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) from = from * shape[axis] + index[static_cast<std::size_t>(axis)];
    ASSERT_EQ(out[static_cast<std::size_t>(linear)], in[static_cast<std::size_t>(from)])
        << program.to_string() << " by " << run.implementation(0);
  }
  EXPECT_TRUE(run.canaries_intact()) << program.to_string() << " by " << run.implementation(0);
}

TEST(Transpose, PutsEveryElementWhereThePermutationSays) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i32, DType::u8, DType::f64}) {
    expect_transposed(Shape{37, 65}, {1, 0}, dtype);
    expect_transposed(Shape{1, 9}, {1, 0}, dtype);
    expect_transposed(Shape{3, 40, 33}, {0, 2, 1}, dtype);
    expect_transposed(Shape{3, 4, 5, 6}, {0, 2, 1, 3}, dtype);
    expect_transposed(Shape{3, 4, 5, 6}, {3, 1, 0, 2}, dtype);
    expect_transposed(Shape{7, 70}, {0, 1}, dtype);
  }
}

// Into a part of wider rows, as heads that share a part of their keys get it.
TEST(RepeatRows, WritesEveryRowAsOftenAsAskedAndNothingElse) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{3, 1, 17}, Role::activation));
    const ValueId whole = program.reserve(tensor("whole", dtype, Shape{3, 5, 24}, Role::activation));
    TensorSpec part = tensor("y", dtype, Shape{3, 5, 17}, Role::activation);
    part.layout.strides = {5 * 24, 24, 1};
    const ValueId y = program.part(whole, part, 7);
    repeat_rows_into(program, Math{}, "op", x, y);
    ProgramRun run(shared_backend(), program);
    run.set(x, counting(3 * 17, dtype));
    run.run();

    const std::vector<double> in = run.get(x), out = run.get(y);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], in[i / (5 * 17) * 17 + i % 17]) << i;
    EXPECT_TRUE(run.canaries_intact());
  }
}

TEST(Transpose, KeepsNanPayloadsAndSubnormals) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{32, 48}, Role::activation));
    const ValueId y = transpose(program, {{1, 0}}, "transpose", x);
    ProgramRun run(shared_backend(), program);
    // Every element of x still is 0xA5...: a subnormal in neither type, so that one is set as well.
    std::vector<double> values = run.get(x);
    values[5] = dtype == DType::f32 ? 1e-40 : 1e-39;
    values[6] = std::nan("");
    run.set(x, values);
    run.run();
    const std::vector<std::byte> in = run.bytes_of(x), out = run.bytes_of(y);
    const std::size_t size = size_of(dtype);
    for (const std::size_t j : {5U, 6U, 7U}) {  // x[0, j] is y[j, 0]
      for (std::size_t b = 0; b < size; ++b) EXPECT_EQ(out[j * 32 * size + b], in[j * size + b]) << j;
    }
  }
}

void expect_reordered(const Shape& shape, const Layout& from, const Layout& to, DType dtype) {
  Program program;
  TensorSpec x_spec = tensor("x", dtype, shape, Role::activation);
  x_spec.layout = from;
  const ValueId x = program.add(x_spec);
  const ValueId y = reorder(program, to, "reorder", x);
  ProgramRun run(shared_backend(), program);
  run.set(x, counting(shape.elements(), dtype));
  run.run();
  EXPECT_EQ(run.get(y), counting(shape.elements(), dtype)) << program.to_string() << " by " << run.implementation(0);
  EXPECT_TRUE(run.canaries_intact()) << program.to_string() << " by " << run.implementation(0);
}

TEST(Reorder, KeepsTheLogicalTensorInAnyLayout) {
  const Shape image{2, 19, 5, 6};  // n, c, h, w
  const Layout nchw = Layout::row_major(image);
  const Layout nhwc = Layout::ordered(image, std::vector<int>{0, 2, 3, 1});
  const Layout nchw16c = Layout::blocked(image, {{1, 16}});
  const Shape filter{40, 33, 3, 2};  // o, i, h, w
  const Layout oihw = Layout::row_major(filter);
  const Layout oihw16i16o = Layout::blocked(filter, {{1, 16}, {0, 16}});
  const Layout oihw8i16o2i = Layout::blocked(filter, {{1, 8}, {0, 16}, {1, 2}});  // bf16 pairs, as AMX and VNNI want
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::f64}) {
    expect_reordered(image, nchw, nhwc, dtype);
    expect_reordered(image, nhwc, nchw, dtype);
    expect_reordered(image, nchw, nchw16c, dtype);
    expect_reordered(image, nchw16c, nhwc, dtype);
    expect_reordered(filter, oihw, oihw16i16o, dtype);
    expect_reordered(filter, oihw16i16o, oihw8i16o2i, dtype);
    expect_reordered(filter, oihw8i16o2i, oihw, dtype);
    expect_reordered(Shape{17}, Layout::row_major(Shape{17}), Layout::blocked(Shape{17}, {{0, 4}}), dtype);
  }
}

TEST(Reorder, WritesZerosIntoThePaddingOfBlocks) {
  const Shape shape{3, 5};
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, shape, Role::activation));
  const ValueId y = reorder(program, Layout::blocked(shape, {{1, 4}}), "reorder", x);
  ProgramRun run(shared_backend(), program);
  run.set(x, std::vector<double>(15, 1.0));
  run.run();
  const std::vector<std::byte> bytes = run.bytes_of(y);
  ASSERT_EQ(bytes.size(), 3U * 8U * 4U);  // 5 columns take two blocks of 4
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t pad = 5; pad < 8; ++pad) {
      const std::byte* element = bytes.data() + 4 * (row * 8 + pad);
      EXPECT_EQ(load(DType::f32, element), 0.0) << row << ", " << pad;
    }
  }
}

}  // namespace reorder_test
}  // namespace gpubench

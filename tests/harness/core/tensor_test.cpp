#include "harness/core/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

// A tensor whose storage holds 0, 1, 2, ...: each element is its offset.
struct Counting {
  TensorSpec spec;
  std::vector<float> storage;
  TensorView view;

  Counting(Shape shape, Layout layout) : spec(tensor("t", DType::f32, std::move(shape), Role::input)) {
    spec.layout = std::move(layout);
    storage.resize(static_cast<std::size_t>(spec.layout.span_elements(spec.shape)));
    std::iota(storage.begin(), storage.end(), 0.0F);
    view = TensorView(spec, reinterpret_cast<const std::byte*>(storage.data()));
  }
};

std::vector<double> read(const TensorView& view, std::int64_t linear, std::size_t count) {
  std::vector<double> out(count);
  view.read(linear, out);
  return out;
}

TEST(TensorSpec, BytesReachFromTheFirstElementToTheLast) {
  TensorSpec spec = tensor("x", DType::bf16, {4, 6}, Role::input);
  EXPECT_EQ(spec.bytes(), 48);
  spec.layout.strides = {10, 1};  // three rows of 10 and one of 6
  EXPECT_EQ(spec.bytes(), 72);
  EXPECT_EQ(spec.to_string(), "x: bf16[4, 6]");
}

TEST(TensorSpec, TwoElementsOfFourBitsFillAByte) {
  EXPECT_EQ(tensor("x", DType::f4_e2m1, {3, 5}, Role::input).bytes(), 8);
  EXPECT_EQ(tensor("x", DType::f4_e2m1, {4, 5}, Role::input).bytes(), 10);
}

TEST(TensorView, RowMajorElementsAreReadInOrder) {
  const Counting t({2, 3}, Layout::row_major({2, 3}));
  EXPECT_EQ(read(t.view, 1, 4), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(t.view.at({1, 2}), 5.0);
  EXPECT_EQ(t.view[4], 4.0);
}

// Rows 10 apart: a run of logical elements jumps from the end of one row to the start of the next.
TEST(TensorView, ARunCrossesRowsOfAStridedPart) {
  const Counting t({3, 4}, Layout{{10, 2}, {}});
  EXPECT_EQ(read(t.view, 2, 5), (std::vector<double>{4, 6, 10, 12, 14}));
  EXPECT_EQ(t.view.at({2, 3}), 26.0);
  EXPECT_EQ(t.view[11], 26.0);
}

TEST(TensorView, NothingOutsideTheTensorIsRead) {
  const Counting t({2, 3}, Layout::row_major({2, 3}));
  std::vector<double> out(3);
  EXPECT_THROW((void)t.view[6], ProgramError);
  EXPECT_THROW((void)t.view[-1], ProgramError);
  EXPECT_THROW((void)t.view.at({2, 0}), ProgramError);
  EXPECT_THROW((void)t.view.at({1}), ProgramError);
  EXPECT_THROW(t.view.read({1, 1}, 1, out), ProgramError);
  EXPECT_THROW(t.view.read({0, 0, 0}, 1, out), ProgramError);
  EXPECT_THROW(t.view.read(4, out), ProgramError);
  t.view.read(3, out);
  EXPECT_EQ(out, (std::vector<double>{3, 4, 5}));
}

TEST(TensorView, AColumnIsReadAlongItsAxis) {
  const Counting t({3, 4}, Layout{{10, 2}, {}});
  std::vector<double> column(3);

  t.view.read({0, 1}, 0, column);

  EXPECT_EQ(column, (std::vector<double>{2, 12, 22}));
}

TEST(TensorView, NegativeAxesCountFromTheBackWhenReading) {
  const Counting t({3, 4}, Layout::row_major({3, 4}));
  std::vector<double> row(2);

  t.view.read({1, 2}, -1, row);

  EXPECT_EQ(row, (std::vector<double>{6, 7}));
}

// 2 x 2 tiles of a [4, 4] matrix: row 0 lies at 0, 1, 4, 5 and row 1 at 2, 3, 6, 7.
TEST(TensorView, BlockedElementsAreFoundInTheirTiles) {
  const Counting t({4, 4}, Layout::blocked({4, 4}, {{0, 2}, {1, 2}}));
  EXPECT_EQ(read(t.view, 0, 8), (std::vector<double>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(t.view.at({3, 2}), 14.0);
  std::vector<double> column(4);
  t.view.read({0, 1}, 0, column);
  EXPECT_EQ(column, (std::vector<double>{1, 3, 9, 11}));
}

TEST(TensorView, AScalarIsItsOneElement) {
  const Counting t(Shape{}, Layout{});
  EXPECT_EQ(t.view[0], 0.0);
  EXPECT_EQ(read(t.view, 0, 1), std::vector<double>{0});
}

TEST(TensorView, NarrowTypesAreWidenedExactly) {
  TensorSpec spec = tensor("x", DType::bf16, {3}, Role::input);
  std::vector<std::byte> storage(6);
  for (int i = 0; i < 3; ++i) store(DType::bf16, storage.data() + 2 * i, 0.5 * (i - 1));
  const TensorView view(spec, storage.data());
  EXPECT_EQ(read(view, 0, 3), (std::vector<double>{-0.5, 0.0, 0.5}));
}

TEST(TensorSpec, MoreBytesThanCanBeCountedAreRefusedNotWrapped) {
  // 2^62 elements of 4 bytes would be 0 bytes in 64 bits.
  EXPECT_THROW((void)tensor("x", DType::f32, {std::int64_t{1} << 62}, Role::input).bytes(), ProgramError);
  EXPECT_THROW((void)tensor("x", DType::f32, {(std::int64_t{1} << 48) + 1}, Role::input).bytes(), ProgramError);
  EXPECT_EQ(tensor("x", DType::f32, {std::int64_t{1} << 48}, Role::input).bytes(), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace gpubench

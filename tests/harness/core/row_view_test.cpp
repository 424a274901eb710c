#include "harness/core/row_view.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace {

TensorSpec strided(Shape shape, std::vector<std::int64_t> strides) {
  TensorSpec spec = tensor("x", DType::f32, std::move(shape), Role::activation);
  spec.layout.strides = std::move(strides);
  return spec;
}

TEST(RowView, DenseTensorsAreRowsOfTheirLastAxis) {
  EXPECT_EQ(row_view(strided({2, 3, 5}, {15, 5, 1})), (RowView{6, 5, 5}));
  EXPECT_EQ(row_view(strided({7}, {1})), (RowView{1, 7, 7}));
  EXPECT_EQ(row_view(strided({}, {})), (RowView{1, 1, 1}));
}

TEST(RowView, PartsOfAWiderRowKeepItsStride) {
  EXPECT_EQ(row_view(strided({2, 4, 8}, {96, 24, 1})), (RowView{8, 8, 24}));   // q of packed qkv
  EXPECT_EQ(row_view(strided({4, 1, 8}, {24, 999, 1})), (RowView{4, 8, 24}));  // an axis of one may stride anyhow
}

TEST(RowView, UnevenlySpacedRowsHaveNone) {
  EXPECT_EQ(row_view(strided({3, 5}, {1, 3})), std::nullopt);         // transposed
  EXPECT_EQ(row_view(strided({2, 3, 5}, {20, 5, 1})), std::nullopt);  // a gap after each three rows
  TensorSpec blocked = tensor("x", DType::f32, {4, 32}, Role::activation);
  blocked.layout = Layout::blocked(blocked.shape, {{1, 16}});
  EXPECT_EQ(row_view(blocked), std::nullopt);
}

TEST(RowView, OneRunIsSharedOnlyByDenseTensorsOfOneOrder) {
  const TensorSpec dense = strided({3, 5}, {5, 1});
  const TensorSpec transposed = strided({3, 5}, {1, 3});
  const TensorSpec gaps = strided({3, 5}, {8, 1});
  EXPECT_TRUE(share_one_run(std::vector{dense, dense}));
  EXPECT_TRUE(share_one_run(std::vector{transposed, transposed}));
  EXPECT_FALSE(share_one_run(std::vector{dense, transposed}));
  EXPECT_FALSE(share_one_run(std::vector{gaps, gaps}));
  EXPECT_TRUE(is_dense(transposed));
  EXPECT_FALSE(is_dense(gaps));
}

}  // namespace
}  // namespace gpubench

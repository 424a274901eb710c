// Sums over rows, in two launches: blocks sum some rows each into scratch memory, then the parts are added in order.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// y[g, j] = sum of x[i, j] over the g-th of `sums` equal shares of the rows. x [rows, columns] of type `from`, y
/// [sums, columns] of type `to`. f64 sums in f64, and only f64
/// from f64.
struct ColumnSumArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::int64_t sums = 1, y_stride = 0;
  void* partial = nullptr;  ///< scratch: [parts, columns] in f32 (f64 for f64)
  std::int64_t parts = 1;   ///< column_sum_parts(); of several sums, as many as there are
};

[[nodiscard]] std::int64_t column_sum_parts(std::int64_t rows, std::int64_t columns, int multiprocessors);

void launch_column_sum(const ColumnSumArgs& args, cudaStream_t stream);

/// y[j] = sum over parts of partial[part, j] for j < columns; the first `split` of them go to y, the others to y_rest.
/// `to` as above; partial is f64 when `to` is.
struct PartialSumArgs {
  Element to = Element::f32;
  const void* partial = nullptr;
  std::int64_t parts = 1, columns = 0;
  std::int64_t split = 0;
  void* y = nullptr;
  void* y_rest = nullptr;
  std::int64_t row_columns = 0, row_gap = 0;  ///< where y is rows: of how many columns each, and what lies between them
};

void launch_partial_sum(const PartialSumArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda

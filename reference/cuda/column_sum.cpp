#include "reference/cuda/plans.h"

#include "reference/cuda/kernels/column_sum.h"
#include "reference/ops/bias_gradient.h"

namespace gpubench::cuda {

Plan plan_column_sum(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  ColumnSumArgs args;
  args.from = any_element(call, tensors[0]);
  args.to = any_element(call, tensors[1]);
  if (args.from == Element::f64 || args.to == Element::f64) expect_same_type(call, tensors[0], tensors[1]);
  expect_row_major(call, tensors[1]);
  const RowView rows = rows_of(call, tensors[0]);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.stride = rows.stride;
  args.parts = column_sum_parts(rows.rows, rows.columns, context.device.multiprocessors);
  const std::size_t sum_bytes = args.from == Element::f64 ? sizeof(double) : sizeof(float);
  const std::size_t bytes = static_cast<std::size_t>(args.parts * args.columns) * sum_bytes;
  return own_plan(
      call, context, args, launch_column_sum,
      {{"x", to<&ColumnSumArgs::x>}, {"y", to<&ColumnSumArgs::y>}, {workspace_operand, to<&ColumnSumArgs::partial>}},
      bytes);
}

}  // namespace gpubench::cuda

#include "reference/cuda/column_sum.h"

#include "reference/cuda/kernels/column_sum.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/column_sum.h"

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
  return plan_of(own_implementation(context), bytes, [args](std::span<const Tensor> bound, Workspace space) {
    ColumnSumArgs work = args;
    work.x = bound[0].data;
    work.y = bound[1].data;
    work.partial = space.data;
    return [work](cudaStream_t stream) {
      launch_column_sum(work, stream);
      check_launch("column_sum");
    };
  });
}

}  // namespace gpubench::cuda

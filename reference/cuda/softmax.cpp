#include "reference/cuda/kernels/softmax.h"

#include "reference/cuda/plans.h"
#include "reference/ops/softmax.h"

namespace gpubench::cuda {

Plan plan_softmax_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = SoftmaxArgs;
  const RowView x = rows_of(call, tensors[0]);
  Args args{any_element(call, tensors[0])};
  args.rows = x.rows;
  args.columns = x.columns;
  args.x_stride = x.stride;
  args.to_stride = rows_of(call, tensors[1]).stride;
  return own_plan(call, context, args, launch_softmax_forward, {{"x", to<&Args::x>}, {"y", to<&Args::to>}});
}

Plan plan_softmax_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = SoftmaxArgs;
  const RowView y = rows_of(call, tensors[0]);
  Args args{any_element(call, tensors[0])};
  args.rows = y.rows;
  args.columns = y.columns;
  args.x_stride = y.stride;
  args.dy_stride = rows_of(call, tensors[1]).stride;
  args.to_stride = rows_of(call, tensors[2]).stride;
  return own_plan(call, context, args, launch_softmax_backward,
                  {{"y", to<&Args::x>}, {"dy", to<&Args::dy>}, {"dx", to<&Args::to>}});
}

}  // namespace gpubench::cuda

#include "reference/cuda/kernels/rows.h"

#include "reference/cuda/kernel.h"
#include "reference/ops/softmax.h"

namespace gpubench::cuda {
namespace {

SoftmaxArgs softmax_args(const OpCall& call, const TensorSpec& from, const TensorSpec& to) {
  const RowView rows = rows_of(call, from);
  SoftmaxArgs args{any_element(call, from)};
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.to_stride = rows_of(call, to).stride;
  return args;
}

Plan plan_softmax_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return own_plan(call, context, softmax_args(call, tensors[0], tensors[1]), launch_softmax_forward,
                  {{"x", to<&SoftmaxArgs::x>}, {"y", to<&SoftmaxArgs::to>}});
}

Plan plan_softmax_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  SoftmaxArgs args = softmax_args(call, tensors[0], tensors[2]);
  args.dy_stride = rows_of(call, tensors[1]).stride;
  return own_plan(call, context, args, launch_softmax_backward,
                  {{"y", to<&SoftmaxArgs::x>}, {"dy", to<&SoftmaxArgs::dy>}, {"dx", to<&SoftmaxArgs::to>}});
}

}  // namespace

Ops softmax_ops() {
  return {{softmax_backward_kind, plan_softmax_backward}, {softmax_forward_kind, plan_softmax_forward}};
}

}  // namespace gpubench::cuda

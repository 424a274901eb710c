#include "reference/ops/pool.h"

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/images.h"

namespace gpubench::cuda {
namespace {

PoolAxisArgs axis_args(const PoolAxis& axis) {
  return {axis.extent, axis.outputs(), axis.window, axis.stride, axis.pad};
}

PoolArgs pool_args(const OpCall& call, const Named<TensorSpec>& operand, const TensorSpec& x, const TensorSpec& y) {
  expect_same_type(call, x, y);
  for (const TensorSpec* tensor : {&x, &y}) expect_row_major(call, *tensor);
  if (const TensorSpec* index = operand.find("index")) {
    expect_type(call, *index, DType::u8);
    expect_row_major(call, *index);
  }
  const Pool& attributes = call.attributes.as<Pool>();
  const PoolExtents e = pool_extents(call.kind, attributes, x.shape);
  PoolArgs args;
  args.data = any_element(call, x);
  args.images = e.n;
  args.channels = e.c;
  args.vertical = axis_args(e.vertical);
  args.horizontal = axis_args(e.horizontal);
  args.counts_padding = attributes.counts_padding;
  return args;
}

// All row-major.
Plan plan_max_pool_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  return own_plan(call, context, pool_args(call, operand, operand["x"], operand["y"]), launch_max_pool_forward,
                  {{"x", to<&PoolArgs::from>}, {"y", to<&PoolArgs::to>}, {"index", to<&PoolArgs::index>}});
}

Plan plan_max_pool_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  return own_plan(call, context, pool_args(call, operand, operand["dx"], operand["dy"]), launch_max_pool_backward,
                  {{"dy", to<&PoolArgs::from>}, {"index", to<&PoolArgs::chosen>}, {"dx", to<&PoolArgs::to>}});
}

Plan plan_average_pool_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  return own_plan(call, context, pool_args(call, operand, operand["x"], operand["y"]), launch_average_pool_forward,
                  {{"x", to<&PoolArgs::from>}, {"y", to<&PoolArgs::to>}});
}

Plan plan_average_pool_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  return own_plan(call, context, pool_args(call, operand, operand["dx"], operand["dy"]), launch_average_pool_backward,
                  {{"dy", to<&PoolArgs::from>}, {"dx", to<&PoolArgs::to>}});
}

}  // namespace

Ops pool_ops() {
  return {{average_pool_backward_kind, plan_average_pool_backward},
          {average_pool_forward_kind, plan_average_pool_forward},
          {max_pool_backward_kind, plan_max_pool_backward},
          {max_pool_forward_kind, plan_max_pool_forward}};
}

}  // namespace gpubench::cuda

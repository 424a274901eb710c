#include "reference/ops/pool.h"

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/images.h"

namespace gpubench::cuda {
namespace {

PoolAxisArgs axis_args(const PoolAxis& axis) {
  return {axis.extent, axis.outputs(), axis.window, axis.stride, axis.pad};
}

// max_pool and average_pool, forward and backward; row-major.
template <auto launch, bool backward>
Plan plan_pool(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec &x = operand[backward ? "dx" : "x"], &y = operand[backward ? "dy" : "y"];
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
  constexpr auto index = backward ? OperandPlace<PoolArgs>{"index?", to<&PoolArgs::chosen>}
                                  : OperandPlace<PoolArgs>{"index?", to<&PoolArgs::index>};
  return own_plan(call, context, args, launch,
                  {{backward ? "dy" : "x", to<&PoolArgs::from>}, {backward ? "dx" : "y", to<&PoolArgs::to>}, index});
}

}  // namespace

Ops pool_ops() {
  return {{average_pool_backward_kind, plan_pool<launch_average_pool_backward, true>},
          {average_pool_forward_kind, plan_pool<launch_average_pool_forward, false>},
          {max_pool_backward_kind, plan_pool<launch_max_pool_backward, true>},
          {max_pool_forward_kind, plan_pool<launch_max_pool_forward, false>}};
}

}  // namespace gpubench::cuda

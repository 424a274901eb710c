#include "reference/ops/batch_norm.h"

#include "reference/cuda/kernels/images.h"
#include "reference/cuda/plans.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

BatchNormArgs batch_norm_args(const OpCall& call, const Named<TensorSpec>& operand, const CudaContext& context) {
  const TensorSpec& x = operand["x"];
  operand.each({"x", "y", "r", "dy", "dy2", "dx", "dr"}, [&](const TensorSpec& data) {
    expect_same_type(call, x, data);
    expect_row_major(call, data);
  });
  operand.each({"gamma", "beta", "mean", "rstd", "running_mean", "running_var", "dgamma", "dbeta"},
               [&](const TensorSpec& of_channels) {
                 expect_type(call, of_channels, statistic_type(x.dtype));
                 expect_row_major(call, of_channels);
               });
  BatchNormArgs args;
  args.data = any_element(call, x);
  args.channels = x.shape[-1];
  args.rows = x.shape.elements() / args.channels;
  args.parts = batch_norm_parts(args, context.device.multiprocessors);
  return args;
}

std::size_t batch_norm_scratch(const BatchNormArgs& args) {
  if (args.sum_stride != 0) return static_cast<std::size_t>(2 * args.sum_stride) * sizeof(float);
  const std::size_t sum_bytes = args.data == Element::f64 ? sizeof(double) : sizeof(float);
  return static_cast<std::size_t>(2 * args.parts * args.channels) * sum_bytes;
}

Plan plan_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context, bool of_sums) {
  BatchNormArgs args = batch_norm_args(call, {call, tensors}, context);
  if (of_sums) args.sum_stride = batch_norm_sum_stride(args.channels);
  args.relu = call.kind == batch_norm_relu_forward_kind;
  const BatchNorm& norm = args.relu ? call.attributes.as<BatchNormRelu>().norm : call.attributes.as<BatchNorm>();
  args.epsilon = norm.epsilon;
  args.momentum = norm.momentum;
  return own_plan(call, context, args, launch_batch_norm_forward,
                  {{"x", to<&BatchNormArgs::x>},
                   {"gamma", to<&BatchNormArgs::gamma>},
                   {"beta", to<&BatchNormArgs::beta>},
                   {"r?", to<&BatchNormArgs::r>},
                   {"y", to<&BatchNormArgs::to>},
                   {"mean", to<&BatchNormArgs::mean>},
                   {"rstd", to<&BatchNormArgs::rstd>},
                   {"running_mean'", to<&BatchNormArgs::running_mean>},
                   {"running_var'", to<&BatchNormArgs::running_var>},
                   {workspace_operand, to<&BatchNormArgs::partial>}},
                  batch_norm_scratch(args));
}

// Row-major tensors; channel tensors f32 (f64 for f64).
Plan plan_batch_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  BatchNormArgs args = batch_norm_args(call, {call, tensors}, context);
  args.relu = call.kind == batch_norm_relu_backward_kind;
  std::size_t scratch = batch_norm_scratch(args);
  if (args.relu && !call.attributes.has("dr")) {
    args.mask_at = static_cast<std::int64_t>(scratch);
    scratch += static_cast<std::size_t>(batch_norm_mask_bytes(args));
  }
  return own_plan(call, context, args, launch_batch_norm_backward,
                  {{"dy", to<&BatchNormArgs::dy>},
                   {"dy2?", to<&BatchNormArgs::dy2>},
                   {"y?", to<&BatchNormArgs::y>},
                   {"dr?", to<&BatchNormArgs::dr>},
                   {"x", to<&BatchNormArgs::x>},
                   {"gamma", to<&BatchNormArgs::gamma>},
                   {"mean", to<&BatchNormArgs::mean>},
                   {"rstd", to<&BatchNormArgs::rstd>},
                   {"dx", to<&BatchNormArgs::to>},
                   {"dgamma", to<&BatchNormArgs::dgamma>},
                   {"dbeta", to<&BatchNormArgs::dbeta>},
                   {workspace_operand, to<&BatchNormArgs::partial>}},
                  scratch);
}

}  // namespace

Plan plan_batch_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_forward(call, tensors, context, false);
}

Plan plan_batch_norm_of_sums(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  if (tensors[0].dtype == DType::f64) refuse(call, "f64 data with sums in f32; expected narrower data");
  return plan_forward(call, tensors, context, true);
}

Ops batch_norm_ops() {
  return {{batch_norm_backward_kind, plan_batch_norm_backward},
          {batch_norm_forward_kind, plan_batch_norm_forward},
          {batch_norm_relu_backward_kind, plan_batch_norm_backward, Gain::expected},
          {batch_norm_relu_forward_kind, plan_batch_norm_forward, Gain::expected}};
}

}  // namespace gpubench::cuda

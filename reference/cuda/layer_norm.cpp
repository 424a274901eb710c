#include "reference/cuda/layer_norm.h"

#include <fmt/format.h>

#include "reference/cuda/kernels/layer_norm.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/residual_norm.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

Element parameter_element(const OpCall& call, const TensorSpec& parameter, const TensorSpec& data) {
  const bool f32 = parameter.dtype == DType::f32 && data.dtype != DType::f64;
  if (parameter.dtype != data.dtype && !f32) {
    refuse(call,
           fmt::format("parameter {} and data {}; expected parameters of the data's type, or f32 with a narrower one",
                       parameter.to_string(), data.to_string()));
  }
  return any_element(call, parameter);
}

/// The tensors that a forward has, with a residual or without.
struct ForwardTensors {
  const TensorSpec &x, &gamma, &beta, &y, &mean, &rstd;
};

/// Throws Unsupported where a type or layout is not to be had.
LayerNormForwardArgs forward_args(const OpCall& call, const ForwardTensors& t, double epsilon) {
  LayerNormForwardArgs args;
  args.data = any_element(call, t.x);
  expect_same_type(call, t.x, t.y);
  args.parameter = parameter_element(call, t.gamma, t.x);
  expect_same_type(call, t.gamma, t.beta);
  for (const TensorSpec* dense : {&t.gamma, &t.beta, &t.mean, &t.rstd}) expect_row_major(call, *dense);
  for (const TensorSpec* statistic : {&t.mean, &t.rstd}) expect_type(call, *statistic, statistic_type(t.x.dtype));
  const RowView rows = rows_of(call, t.x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.y_stride = rows_of(call, t.y).stride;
  args.epsilon = epsilon;
  return args;
}

}  // namespace

Plan plan_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const LayerNormForwardArgs args =
      forward_args(call, {tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], tensors[5]},
                   call.attributes.as<LayerNorm>().epsilon);
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    LayerNormForwardArgs work = args;
    work.x = bound[0].data;
    work.gamma = bound[1].data;
    work.beta = bound[2].data;
    work.y = bound[3].data;
    work.mean = bound[4].data;
    work.rstd = bound[5].data;
    return [work](cudaStream_t stream) {
      launch_layer_norm_forward(work, stream);
      check_launch("layer_norm_forward");
    };
  });
}

Plan plan_residual_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  LayerNormForwardArgs args =
      forward_args(call, {tensors[0], tensors[2], tensors[3], tensors[5], tensors[6], tensors[7]},
                   call.attributes.as<ResidualNorm>().epsilon);
  for (const std::size_t i : {1U, 4U}) expect_same_type(call, tensors[0], tensors[i]);
  args.residual_stride = rows_of(call, tensors[1]).stride;
  args.sum_stride = rows_of(call, tensors[4]).stride;
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    LayerNormForwardArgs work = args;
    work.x = bound[0].data;
    work.residual = bound[1].data;
    work.gamma = bound[2].data;
    work.beta = bound[3].data;
    work.sum = bound[4].data;
    work.y = bound[5].data;
    work.mean = bound[6].data;
    work.rstd = bound[7].data;
    return [work](cudaStream_t stream) {
      launch_residual_norm_forward(work, stream);
      check_launch("residual_norm_forward");
    };
  });
}

Plan plan_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[1];
  LayerNormBackwardArgs args;
  args.data = any_element(call, x);
  args.parameter = parameter_element(call, tensors[2], x);
  for (const std::size_t i : {0U, 5U}) expect_same_type(call, x, tensors[i]);
  for (const std::size_t i : {6U, 7U}) expect_same_type(call, tensors[2], tensors[i]);
  for (const std::size_t i : {2U, 3U, 4U, 6U, 7U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {3U, 4U}) expect_type(call, tensors[i], statistic_type(x.dtype));
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.dy_stride = rows_of(call, tensors[0]).stride;
  args.x_stride = rows.stride;
  args.dx_stride = rows_of(call, tensors[5]).stride;
  args.parts = layer_norm_backward_parts(args.data, rows.rows, rows.columns, context.device.multiprocessors);
  const auto bytes = static_cast<std::size_t>(layer_norm_backward_scratch(args.data, args.parts, rows.columns));
  return plan_of(own_implementation(context), bytes, [args](std::span<const Tensor> bound, Workspace space) {
    LayerNormBackwardArgs work = args;
    work.dy = bound[0].data;
    work.x = bound[1].data;
    work.gamma = bound[2].data;
    work.mean = bound[3].data;
    work.rstd = bound[4].data;
    work.dx = bound[5].data;
    work.dgamma = bound[6].data;
    work.dbeta = bound[7].data;
    work.partial = space.data;
    return [work](cudaStream_t stream) {
      launch_layer_norm_backward(work, stream);
      check_launch("layer_norm_backward");
    };
  });
}

}  // namespace gpubench::cuda

#include "reference/cuda/layer_norm.h"

#include <fmt/format.h>

#include "reference/cuda/kernels/layer_norm.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/residual_norm.h"

namespace gpubench::cuda {
namespace {

Element parameter_element(const OpCall& call, const TensorSpec& parameter, const TensorSpec& data) {
  if (parameter.dtype != data.dtype && parameter.dtype != DType::f32) {
    refuse(call, fmt::format("parameter {} and data {}; expected parameters of the data's type or f32",
                             parameter.to_string(), data.to_string()));
  }
  return float_element(call, parameter);
}

}  // namespace

Plan plan_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[0];
  const TensorSpec& y = tensors[3];
  LayerNormForwardArgs args;
  args.data = float_element(call, x);
  expect_same_type(call, x, y);
  args.parameter = parameter_element(call, tensors[1], x);
  expect_same_type(call, tensors[1], tensors[2]);
  for (const std::size_t i : {1U, 2U, 4U, 5U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {4U, 5U}) expect_type(call, tensors[i], DType::f32);
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.y_stride = rows_of(call, y).stride;
  args.epsilon = static_cast<float>(call.attributes.as<LayerNorm>().epsilon);
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    LayerNormForwardArgs work = args;
    work.x = bound[0].data;
    work.gamma = bound[1].data;
    work.beta = bound[2].data;
    work.y = bound[3].data;
    work.mean = elements_of<float>(bound[4]);
    work.rstd = elements_of<float>(bound[5]);
    return [work](cudaStream_t stream) {
      launch_layer_norm_forward(work, stream);
      check_launch("layer_norm_forward");
    };
  });
}

Plan plan_residual_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[0];
  LayerNormForwardArgs args;
  args.data = float_element(call, x);
  for (const std::size_t i : {1U, 4U, 5U}) expect_same_type(call, x, tensors[i]);
  args.parameter = parameter_element(call, tensors[2], x);
  expect_same_type(call, tensors[2], tensors[3]);
  for (const std::size_t i : {2U, 3U, 6U, 7U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {6U, 7U}) expect_type(call, tensors[i], DType::f32);
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.residual_stride = rows_of(call, tensors[1]).stride;
  args.sum_stride = rows_of(call, tensors[4]).stride;
  args.y_stride = rows_of(call, tensors[5]).stride;
  args.epsilon = static_cast<float>(call.attributes.as<ResidualNorm>().epsilon);
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    LayerNormForwardArgs work = args;
    work.x = bound[0].data;
    work.residual = bound[1].data;
    work.gamma = bound[2].data;
    work.beta = bound[3].data;
    work.sum = bound[4].data;
    work.y = bound[5].data;
    work.mean = elements_of<float>(bound[6]);
    work.rstd = elements_of<float>(bound[7]);
    return [work](cudaStream_t stream) {
      launch_residual_norm_forward(work, stream);
      check_launch("residual_norm_forward");
    };
  });
}

Plan plan_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& x = tensors[1];
  LayerNormBackwardArgs args;
  args.data = float_element(call, x);
  args.parameter = parameter_element(call, tensors[2], x);
  for (const std::size_t i : {0U, 5U}) expect_same_type(call, x, tensors[i]);
  for (const std::size_t i : {6U, 7U}) expect_same_type(call, tensors[2], tensors[i]);
  for (const std::size_t i : {2U, 3U, 4U, 6U, 7U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {3U, 4U}) expect_type(call, tensors[i], DType::f32);
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.dy_stride = rows_of(call, tensors[0]).stride;
  args.x_stride = rows.stride;
  args.dx_stride = rows_of(call, tensors[5]).stride;
  args.parts = layer_norm_backward_parts(rows.rows, rows.columns, context.device.multiprocessors);
  const auto bytes = static_cast<std::size_t>(layer_norm_backward_scratch(args.parts, rows.columns));
  return plan_of(own_implementation(context), bytes, [args](std::span<const Tensor> bound, Workspace space) {
    LayerNormBackwardArgs work = args;
    work.dy = bound[0].data;
    work.x = bound[1].data;
    work.gamma = bound[2].data;
    work.mean = elements_of<const float>(bound[3]);
    work.rstd = elements_of<const float>(bound[4]);
    work.dx = bound[5].data;
    work.dgamma = bound[6].data;
    work.dbeta = bound[7].data;
    work.partial = reinterpret_cast<float*>(space.data);
    return [work](cudaStream_t stream) {
      launch_layer_norm_backward(work, stream);
      check_launch("layer_norm_backward");
    };
  });
}

}  // namespace gpubench::cuda

#include "reference/cuda/kernel.h"

#include <fmt/format.h>

#include <initializer_list>

#include "reference/cuda/kernels/rows.h"
#include "reference/ops/norm.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

Element parameter_element(const OpCall& call, const TensorSpec& parameter, const TensorSpec& data) {
  const bool f32 = parameter.dtype == DType::f32 && data.dtype != DType::f64;
  if (parameter.dtype != data.dtype && !f32) {
    refuse(call,
           fmt::format("parameter {} and data {}; expected parameters of the data's type, or f32 with narrower data",
                       parameter.to_string(), data.to_string()));
  }
  return any_element(call, parameter);
}

/// Checks the named operands that the call has: dense; parameters and their gradients of one type; statistics as x
/// needs.
void expect_parameters_and_statistics(const OpCall& call, const Named<TensorSpec>& operand,
                                      std::initializer_list<const char*> parameters) {
  for (const char* name : parameters) {
    if (const TensorSpec* parameter = operand.find(name)) {
      expect_same_type(call, operand["gamma"], *parameter);
      expect_row_major(call, *parameter);
    }
  }
  for (const char* name : {"mean", "rstd"}) {
    if (const TensorSpec* statistic = operand.find(name)) {
      expect_type(call, *statistic, statistic_type(operand["x"].dtype));
      expect_row_major(call, *statistic);
    }
  }
}

// With or without a residual. Parameters have the data's type, or are f32 with narrower data; statistics f64 for f64,
// else f32; x, r, sum and y have one type.
Plan plan_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = LayerNormForwardArgs;
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  Args args;
  args.data = any_element(call, x);
  args.parameter = parameter_element(call, operand["gamma"], x);
  expect_same_type(call, x, operand["y"]);
  expect_parameters_and_statistics(call, operand, {"gamma", "beta"});
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.x_stride = rows.stride;
  args.y_stride = rows_of(call, operand["y"]).stride;
  args.epsilon = row_norm_of(call).norm.epsilon;
  args.rounds = row_norm_of(call).rounds_before_gamma;
  const TensorSpec* const r = operand.find("r");
  if (r != nullptr) {
    for (const char* alike : {"r", "sum"}) expect_same_type(call, x, operand[alike]);
    args.residual_stride = rows_of(call, *r).stride;
    args.sum_stride = rows_of(call, operand["sum"]).stride;
  }
  return own_plan(call, context, args, r != nullptr ? launch_residual_norm_forward : launch_layer_norm_forward,
                  {{"x", to<&Args::x>},
                   {"r?", to<&Args::residual>},
                   {"gamma", to<&Args::gamma>},
                   {"beta?", to<&Args::beta>},
                   {"sum?", to<&Args::sum>},
                   {"y", to<&Args::y>},
                   {"mean?", to<&Args::mean>},
                   {"rstd", to<&Args::rstd>}});
}

Plan plan_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = LayerNormBackwardArgs;
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  Args args;
  args.data = any_element(call, x);
  args.parameter = parameter_element(call, operand["gamma"], x);
  operand.each({"dy", "dr", "dx"}, [&](const TensorSpec& data) { expect_same_type(call, x, data); });
  expect_parameters_and_statistics(call, operand, {"gamma", "dgamma", "dbeta"});
  if (const TensorSpec* dr = operand.find("dr")) args.dr_stride = rows_of(call, *dr).stride;
  const RowView rows = rows_of(call, x);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.dy_stride = rows_of(call, operand["dy"]).stride;
  args.x_stride = rows.stride;
  args.dx_stride = rows_of(call, operand["dx"]).stride;
  args.rounds = row_norm_of(call).rounds_before_gamma;
  args.parts = layer_norm_backward_parts(args.data, rows.rows, rows.columns, context.device.multiprocessors);
  const auto bytes = static_cast<std::size_t>(layer_norm_backward_scratch(args.data, args.parts, rows.columns));
  return own_plan(call, context, args, launch_layer_norm_backward,
                  {{"dy", to<&Args::dy>},
                   {"x", to<&Args::x>},
                   {"gamma", to<&Args::gamma>},
                   {"mean?", to<&Args::mean>},
                   {"rstd", to<&Args::rstd>},
                   {"dr?", to<&Args::dr>},
                   {"dx", to<&Args::dx>},
                   {"dgamma", to<&Args::dgamma>},
                   {"dbeta?", to<&Args::dbeta>},
                   {workspace_operand, to<&Args::partial>}},
                  bytes);
}

}  // namespace

Ops norm_ops() {
  return {{layer_norm_backward_kind, plan_norm_backward},
          {layer_norm_forward_kind, plan_norm_forward},
          {residual_norm_backward_kind, plan_norm_backward, Gain::expected},
          {residual_norm_forward_kind, plan_norm_forward, Gain::expected},
          {rms_norm_backward_kind, plan_norm_backward},
          {rms_norm_forward_kind, plan_norm_forward}};
}

}  // namespace gpubench::cuda

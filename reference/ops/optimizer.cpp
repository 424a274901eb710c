#include "reference/ops/optimizer.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_gradients(const Program& program, OpKind op, std::span<const ValueId> gradients) {
  if (gradients.empty()) throw ProgramError(std::string(op.name) + ": no gradients given; expected at least one");
  for (const ValueId gradient : gradients) expect_float(op, program.spec(gradient));
}

void expect_limit(const Program& program, OpKind op, double limit, ValueId norm) {
  expect_float_tensor(program, op, norm, {1});
  if (!(limit > 0.0)) throw ProgramError(std::string(op.name) + ": limit is not above 0; expected a positive norm");
}

// Masters and moments are f32, or f64 in fp64 programs.
void expect_master(const Program& program, OpKind op, ValueId id, const Shape& shape) {
  expect_shape(op, program.spec(id), shape);
  if (program.spec(id).dtype != DType::f64) expect_dtype(op, program.spec(id), DType::f32);
}

struct Parameter {
  ValueId weight, gradient;
  std::vector<ValueId> moments;
  std::optional<ValueId> copy;
};

std::vector<Parameter> parameters_of(std::span<const AdamWTensor> tensors) {
  std::vector<Parameter> result;
  for (const AdamWTensor& t : tensors) result.push_back({t.weight, t.gradient, {t.m, t.v}, t.copy});
  return result;
}

std::vector<Parameter> parameters_of(std::span<const SgdTensor> tensors) {
  std::vector<Parameter> result;
  for (const SgdTensor& t : tensors) result.push_back({t.weight, t.gradient, {t.m}, t.copy});
  return result;
}

void expect_parameter(const Program& program, OpKind op, const Parameter& parameter, bool copies) {
  const Shape& shape = program.spec(parameter.weight).shape;
  expect_master(program, op, parameter.weight, shape);
  for (const ValueId moment : parameter.moments) expect_master(program, op, moment, shape);
  expect_float_tensor(program, op, parameter.gradient, shape);
  if (parameter.copy.has_value() != copies) {
    throw ProgramError(std::string(op.name) + ": tensor '" + program.spec(parameter.weight).name + "' has " +
                       (copies ? "no" : "a") +
                       " low-precision copy; expected one for every tensor with copies, else for none");
  }
  if (!copies) return;
  expect_float_tensor(program, op, *parameter.copy, shape);
}

}  // namespace

ValueId gradient_norm(Program& program, const Math& math, std::string label, std::span<const ValueId> gradients) {
  expect_gradients(program, gradient_norm_kind, gradients);
  const DType wide = statistic_type(program.spec(gradients.front()).dtype);
  const ValueId norm = reserve_output(program, gradients.front(), label, wide, Shape{1}, Role::scalar);
  program.append({gradient_norm_kind, {}, math, {gradients.begin(), gradients.end()}, {norm}, std::move(label)});
  return norm;
}

std::vector<ValueId> clip(Program& program, const Clip& attributes, const Math& math, std::string label, ValueId norm,
                          std::span<const ValueId> gradients) {
  expect_gradients(program, clip_kind, gradients);
  expect_limit(program, clip_kind, attributes.limit, norm);
  std::vector<ValueId> inputs{norm};
  std::vector<ValueId> outputs;
  for (const ValueId gradient : gradients) {
    inputs.push_back(gradient);
    outputs.push_back(update_output(program, gradient));
  }
  program.append({clip_kind, attributes, math, std::move(inputs), outputs, std::move(label)});
  return outputs;
}

namespace {

/// Appends `call`, whose inputs so far are those before lr.
void append_update(Program& program, OpCall call, ValueId lr, std::optional<ValueId> step,
                   std::optional<ValueId> found_inf, const std::vector<Parameter>& parameters) {
  // clip_adamw names adamw in its errors.
  const OpKind op = call.kind == clip_adamw_kind ? adamw_kind : call.kind;
  if (parameters.empty()) throw ProgramError(std::string(op.name) + ": no tensors given; expected at least one");
  expect_float_tensor(program, op, lr, {1});
  call.inputs.push_back(lr);
  if (step) {
    expect_tensor(program, op, *step, {1}, DType::i32);
    call.inputs.push_back(*step);
  }
  if (found_inf) {
    expect_float_tensor(program, op, *found_inf, {1});
    call.inputs.push_back(*found_inf);
  }
  for (const Parameter& parameter : parameters) {
    expect_parameter(program, op, parameter, call.attributes.has("copy"));
    call.inputs.insert(call.inputs.end(), {parameter.weight, parameter.gradient});
    call.outputs.push_back(update_output(program, parameter.weight));
    std::vector<ValueId> updated = parameter.moments;
    if (parameter.copy) updated.push_back(*parameter.copy);
    for (const ValueId old : updated) {
      call.inputs.push_back(old);
      call.outputs.push_back(update_output(program, old));
    }
  }
  program.append(std::move(call));
}

}  // namespace

void adamw(Program& program, AdamW attributes, const Math& math, std::string label, ValueId lr, ValueId step,
           std::span<const AdamWTensor> tensors, std::optional<ValueId> found_inf) {
  attributes.skips = found_inf.has_value();
  append_update(program, {adamw_kind, attributes, math, {}, {}, std::move(label)}, lr, step, found_inf,
                parameters_of(tensors));
}

void clip_adamw(Program& program, ClipAdamW attributes, const Math& math, std::string label, ValueId norm, ValueId lr,
                ValueId step, std::span<const AdamWTensor> tensors, std::optional<ValueId> found_inf) {
  attributes.adamw.skips = found_inf.has_value();
  expect_limit(program, clip_adamw_kind, attributes.limit, norm);
  append_update(program, {clip_adamw_kind, attributes, math, {norm}, {}, std::move(label)}, lr, step, found_inf,
                parameters_of(tensors));
}

void lion(Program& program, Lion attributes, const Math& math, std::string label, ValueId lr,
          std::span<const SgdTensor> tensors, std::optional<ValueId> found_inf) {
  attributes.skips = found_inf.has_value();
  append_update(program, {lion_kind, attributes, math, {}, {}, std::move(label)}, lr, {}, found_inf,
                parameters_of(tensors));
}

void sgd(Program& program, Sgd attributes, const Math& math, std::string label, ValueId lr,
         std::span<const SgdTensor> tensors, std::optional<ValueId> found_inf) {
  attributes.skips = found_inf.has_value();
  append_update(program, {sgd_kind, attributes, math, {}, {}, std::move(label)}, lr, {}, found_inf,
                parameters_of(tensors));
}

AdamWCall adamw_call(const OpCall& call) {
  AdamWCall result;
  if (call.kind == clip_adamw_kind) {
    const auto& attributes = call.attributes.as<ClipAdamW>();
    result.adamw = attributes.adamw;
    result.limit = attributes.limit;
    result.lr = 1;
  } else {
    result.adamw = call.attributes.as<AdamW>();
  }
  if (result.adamw.copies) result.inputs = 5;
  return result;
}

Unscale unscale(Program& program, const Math& math, std::string label, ValueId scale,
                std::span<const ValueId> gradients) {
  if (gradients.empty()) throw ProgramError("unscale: no gradients given; expected at least one");
  expect_float_tensor(program, unscale_kind, scale, {1});
  OpCall call{unscale_kind, {}, math, {scale}, {}, std::move(label)};
  Unscale result;
  result.found_inf =
      reserve_output(program, scale, call.label + ".found_inf", program.spec(scale).dtype, Shape{1}, Role::scalar);
  call.outputs.push_back(result.found_inf);
  for (const ValueId gradient : gradients) {
    const TensorSpec spec = program.spec(gradient);
    expect_float(unscale_kind, spec);
    const DType wide = statistic_type(spec.dtype);
    result.gradients.push_back(spec.dtype == wide ? update_output(program, gradient)
                                                  : reserve_output(program, gradient, spec.name + ".unscaled", wide,
                                                                   spec.shape, Role::gradient));
    call.inputs.push_back(gradient);
    call.outputs.push_back(result.gradients.back());
  }
  program.append(std::move(call));
  return result;
}

void update_scale(Program& program, const UpdateScale& attributes, std::string label, ValueId scale, ValueId tracker,
                  ValueId found_inf) {
  for (const ValueId scalar : {scale, found_inf}) expect_float_tensor(program, update_scale_kind, scalar, {1});
  expect_tensor(program, update_scale_kind, tracker, {1}, DType::i32);
  if (!(attributes.growth > 0.0 && attributes.backoff > 0.0 && attributes.interval > 0)) {
    throw ProgramError("update_scale: growth, backoff and interval must be positive");
  }
  const ValueId new_scale = update_output(program, scale);
  program.append({update_scale_kind,
                  attributes,
                  Math{},
                  {scale, tracker, found_inf},
                  {new_scale, update_output(program, tracker)},
                  std::move(label)});
}

Builders optimizer_builders() {
  return {{adamw_kind, in_turn<adamw>},
          {clip_kind, in_turn<clip>},
          {clip_adamw_kind, in_turn<clip_adamw>},
          {gradient_norm_kind, in_turn<gradient_norm>},
          {lion_kind, in_turn<lion>},
          {sgd_kind, in_turn<sgd>},
          {unscale_kind, in_turn<unscale>},
          {update_scale_kind, in_turn<update_scale>}};
}

}  // namespace gpubench

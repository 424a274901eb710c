#include "reference/ops/optimizer.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

void expect_gradients(const Program& program, OpKind op, std::span<const ValueId> gradients) {
  if (gradients.empty()) throw ProgramError(std::string(op.name) + ": no gradients given; expected at least one");
  for (const ValueId gradient : gradients) expect_float(op, program.spec(gradient));
}

void expect_limit(const Program& program, OpKind op, double limit, ValueId norm) {
  expect_shape(op, program.spec(norm), Shape{1});
  expect_float(op, program.spec(norm));
  if (!(limit > 0.0)) throw ProgramError(std::string(op.name) + ": limit is not above 0; expected a positive norm");
}

// The statistics that a multi-tensor op keeps for itself are f32; fp64 programs (textbook against textbook) keep f64.
void expect_master(const Program& program, ValueId id, const Shape& shape) {
  expect_shape(adamw_kind, program.spec(id), shape);
  if (program.spec(id).dtype != DType::f64) expect_dtype(adamw_kind, program.spec(id), DType::f32);
}

void expect_tensor(const Program& program, const AdamWTensor& tensor, bool copies) {
  const Shape& shape = program.spec(tensor.weight).shape;
  for (const ValueId id : {tensor.weight, tensor.m, tensor.v}) expect_master(program, id, shape);
  expect_shape(adamw_kind, program.spec(tensor.gradient), shape);
  expect_float(adamw_kind, program.spec(tensor.gradient));
  if (tensor.copy.has_value() != copies) {
    throw ProgramError("adamw: tensor '" + program.spec(tensor.weight).name + "' has " + (copies ? "no" : "a") +
                       " low-precision copy; expected one for every tensor with copies, else for none");
  }
  if (!copies) return;
  expect_shape(adamw_kind, program.spec(*tensor.copy), shape);
  expect_float(adamw_kind, program.spec(*tensor.copy));
}

}  // namespace

ValueId gradient_norm(Program& program, const Math& math, std::string label, std::span<const ValueId> gradients) {
  expect_gradients(program, gradient_norm_kind, gradients);
  const DType wide = program.spec(gradients.front()).dtype == DType::f64 ? DType::f64 : DType::f32;
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

/// Appends `call`, which has the inputs that go before lr, and no outputs yet.
void append_step(Program& program, OpCall call, const AdamW& attributes, ValueId lr, ValueId step,
                 std::span<const AdamWTensor> tensors) {
  if (tensors.empty()) throw ProgramError("adamw: no tensors given; expected at least one");
  expect_shape(adamw_kind, program.spec(lr), Shape{1});
  expect_float(adamw_kind, program.spec(lr));
  expect_shape(adamw_kind, program.spec(step), Shape{1});
  expect_dtype(adamw_kind, program.spec(step), DType::i32);
  for (const AdamWTensor& tensor : tensors) expect_tensor(program, tensor, attributes.copies);

  call.inputs.insert(call.inputs.end(), {lr, step});
  for (const AdamWTensor& tensor : tensors) {
    call.inputs.insert(call.inputs.end(), {tensor.weight, tensor.gradient, tensor.m, tensor.v});
    for (const ValueId old : {tensor.weight, tensor.m, tensor.v}) call.outputs.push_back(update_output(program, old));
    if (!tensor.copy) continue;
    call.inputs.push_back(*tensor.copy);
    call.outputs.push_back(update_output(program, *tensor.copy));
  }
  program.append(std::move(call));
}

}  // namespace

void adamw(Program& program, const AdamW& attributes, const Math& math, std::string label, ValueId lr, ValueId step,
           std::span<const AdamWTensor> tensors) {
  append_step(program, {adamw_kind, attributes, math, {}, {}, std::move(label)}, attributes, lr, step, tensors);
}

void clip_adamw(Program& program, const ClipAdamW& attributes, const Math& math, std::string label, ValueId norm,
                ValueId lr, ValueId step, std::span<const AdamWTensor> tensors) {
  expect_limit(program, clip_adamw_kind, attributes.limit, norm);
  append_step(program, {clip_adamw_kind, attributes, math, {norm}, {}, std::move(label)}, attributes.adamw, lr, step,
              tensors);
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
  if (result.adamw.copies) {
    result.inputs = 5;
    result.outputs = 4;
  }
  return result;
}

}  // namespace gpubench

#include "reference/ops/tensor_checks.h"

#include <utility>

namespace gpubench {
namespace {

std::string subject(OpKind op, std::string_view tensor) {
  return std::string(op.name) + ": tensor '" + std::string(tensor) + "' has ";
}

}  // namespace

void refuse_shape(OpKind op, std::string_view tensor, const Shape& shape, std::string_view because,
                  std::string_view expected) {
  throw ProgramError(subject(op, tensor) + "shape " + shape.to_string() + std::string(because) + "; expected " +
                     std::string(expected));
}

void expect_shape(OpKind op, const TensorSpec& tensor, const Shape& expected) {
  if (tensor.shape != expected) refuse_shape(op, tensor.name, tensor.shape, "", expected.to_string());
}

void expect_axes(OpKind op, const TensorSpec& tensor, int rank, std::string_view expected) {
  if (tensor.shape.rank() != rank || tensor.shape.elements() == 0) {
    refuse_shape(op, tensor.name, tensor.shape, "", expected);
  }
}

void expect_rows_divide(OpKind op, const TensorSpec& few, const TensorSpec& many) {
  const bool wide = few.shape.rank() >= 1 && many.shape.rank() >= 1 && few.shape[-1] == many.shape[-1];
  if (wide && few.shape.elements() > 0 && many.shape.elements() % few.shape.elements() == 0) return;
  refuse_shape(op, few.name, few.shape, "",
               "[..., n] of rows that divide those of '" + many.name + "' " + many.shape.to_string());
}

void expect_float(OpKind op, const TensorSpec& tensor) {
  if (!is_float(tensor.dtype)) {
    throw ProgramError(subject(op, tensor.name) + "type " + std::string(name(tensor.dtype)) +
                       "; expected a floating-point type");
  }
}

void expect_float_rows(OpKind op, const TensorSpec& tensor) {
  expect_float(op, tensor);
  if (tensor.shape.rank() < 1 || tensor.shape[-1] < 1)
    refuse_shape(op, tensor.name, tensor.shape, "", "at least one axis, the last with at least one element");
}

void expect_dtype(OpKind op, const TensorSpec& tensor, DType expected) {
  if (tensor.dtype != expected) {
    throw ProgramError(subject(op, tensor.name) + "type " + std::string(name(tensor.dtype)) + "; expected " +
                       std::string(name(expected)));
  }
}

void expect_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape, DType dtype) {
  expect_shape(op, program.spec(id), shape);
  expect_dtype(op, program.spec(id), dtype);
}

void expect_float_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape) {
  expect_shape(op, program.spec(id), shape);
  expect_float(op, program.spec(id));
}

Role role_of_result(const Program& program, std::initializer_list<ValueId> operands) {
  for (const ValueId operand : operands) {
    if (program.spec(operand).role == Role::gradient) return Role::gradient;
  }
  return Role::activation;
}

DType statistic_type(DType data) { return data == DType::f64 ? DType::f64 : DType::f32; }

DType gradient_type(DType value) { return is_float(value) && bits_of(value) <= 8 ? DType::bf16 : value; }

void place_like(Program& program, ValueId like, std::string_view name, TensorSpec& output) {
  const Placement& place = program.spec(like).placement;
  output.placement.rank = place.rank;
  output.placement.ranks = place.ranks;
  const std::string on_rank = name_on_rank("", place.rank, place.ranks);  // "@1"; the label may already end with it
  output.name = program.unique_name(name.ends_with(on_rank) ? std::string(name) : std::string(name) + on_rank);
}

ValueId reserve_output(Program& program, ValueId like, std::string_view name, DType dtype, const Shape& shape,
                       Role role) {
  TensorSpec output = tensor("", dtype, shape, role);
  place_like(program, like, name, output);
  return program.reserve(std::move(output));
}

ValueId reserve_like(Program& program, ValueId like, std::string_view name, Role role) {
  const TensorSpec spec = program.spec(like);
  return reserve_output(program, like, name, spec.dtype, spec.shape, role);
}

ValueId output_or_reserve(Program& program, OpKind op, const std::optional<ValueId>& into, ValueId like,
                          std::string_view name, DType dtype, const Shape& shape, Role role) {
  if (!into) return reserve_output(program, like, name, dtype, shape, role);
  expect_float_tensor(program, op, *into, shape);
  return *into;
}

ValueId update_output(Program& program, ValueId old) {
  return program.update(old, program.unique_name(program.spec(old).name + "'"));
}

}  // namespace gpubench

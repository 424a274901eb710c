#include "reference/ops/bias_gradient.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

/// Requires matrices of one type with at least 16 bits.
GemmExtents checked_extents(const Program& program, OpKind op, const Gemm& attributes, ValueId a, ValueId b) {
  const TensorSpec& left = program.spec(a);
  const TensorSpec& right = program.spec(b);
  expect_float(op, left);
  expect_dtype(op, right, left.dtype);
  if (bits_of(left.dtype) <= 8) {
    throw ProgramError(std::string(op.name) + ": tensor '" + left.name + "' has type " + std::string(name(left.dtype)) +
                       "; expected a type of 16 bits or more");
  }
  expect_axes(op, left, 2, "two axes: no batch");
  return extents_of(attributes, left.shape, right.shape);
}

void expect_plain(OpKind op, const Gemm& attributes, Gemm::Epilogue epilogue, const char* expected) {
  if (is_plain(attributes, epilogue)) return;
  throw ProgramError(std::string(op.name) + ": attributes (" + describe(attributes) + "); expected " + expected);
}

}  // namespace

bool is_plain(const Gemm& attributes, Gemm::Epilogue epilogue) {
  Gemm plain;
  plain.transpose_a = attributes.transpose_a;
  plain.transpose_b = attributes.transpose_b;
  plain.alpha = attributes.alpha;
  plain.epilogue = epilogue;
  plain.gelu_form = attributes.gelu_form;
  return attributes == plain;
}

bool sums_along_k(const GemmWeightBiasGradient& attributes) {
  return attributes.gradient == GemmWeightBiasGradient::Operand::a ? attributes.gemm.transpose_a
                                                                   : !attributes.gemm.transpose_b;
}

GemmBiasGradientResult gemm_gelu_bias_gradient(Program& program, const Gemm& attributes, const Math& math,
                                               std::string label, ValueId a, ValueId b, ValueId pre,
                                               std::optional<ValueId> db) {
  const OpKind op = gemm_gelu_bias_gradient_kind;
  expect_plain(op, attributes, Gemm::Epilogue::gelu_gradient, "epilogue gelu_gradient, transposes and alpha only");
  const GemmExtents e = checked_extents(program, op, attributes, a, b);
  const TensorSpec given = program.spec(pre);
  expect_shape(op, given, {e.m, e.n});
  expect_float(op, given);
  const ValueId dz = reserve_output(program, a, label, program.spec(a).dtype, {e.m, e.n}, Role::gradient);
  const ValueId sum =
      output_or_reserve(program, op, db, a, label + ".db", program.spec(a).dtype, {e.n}, Role::gradient);
  program.append({op, attributes, math, {a, b, pre}, {dz, sum}, std::move(label)});
  return {dz, sum};
}

GemmBiasGradientResult gemm_weight_bias_gradient(Program& program, const GemmWeightBiasGradient& attributes,
                                                 const Math& math, std::string label, ValueId a, ValueId b,
                                                 std::optional<ValueId> dw, std::optional<ValueId> db) {
  const OpKind op = gemm_weight_bias_gradient_kind;
  expect_plain(op, attributes.gemm, Gemm::Epilogue::none, "transposes and alpha only");
  if (!sums_along_k(attributes)) {
    throw ProgramError(std::string(op.name) + ": attributes (" + describe(attributes) +
                       "); expected a gradient whose rows lie along k: a transposed, or b not");
  }
  const GemmExtents e = checked_extents(program, op, attributes.gemm, a, b);
  const DType type = program.spec(a).dtype;
  const Shape bias{attributes.gradient == GemmWeightBiasGradient::Operand::a ? e.m : e.n};
  const ValueId product = output_or_reserve(program, op, dw, a, label, type, {e.m, e.n}, Role::gradient);
  const ValueId sum = output_or_reserve(program, op, db, a, label + ".db", type, bias, Role::gradient);
  program.append({op, attributes, math, {a, b}, {product, sum}, std::move(label)});
  return {product, sum};
}

ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into) {
  const TensorSpec spec = program.spec(x);
  expect_float(column_sum_kind, spec);
  if (spec.shape.rank() < 1) refuse_shape(column_sum_kind, spec.name, spec.shape, "", "[..., n]");
  if (into) {
    expect_float(column_sum_kind, program.spec(*into));
    expect_rows_divide(column_sum_kind, program.spec(*into), spec);
  }
  const ValueId y =
      into ? *into : reserve_output(program, x, label, spec.dtype, Shape{spec.shape[-1]}, role_of_result(program, {x}));
  program.append({column_sum_kind, {}, math, {x}, {y}, std::move(label)});
  return y;
}

Builders bias_gradient_builders() {
  return {{column_sum_kind, in_turn<column_sum, true>},
          {gemm_gelu_bias_gradient_kind,
           [](const BuilderArguments& a) {
             gemm_gelu_bias_gradient(a.program, a.attributes<Gemm>(), a.call.math, a.call.label, a.in("a"), a.in("b"),
                                     a.in("pre"), a.into(1));
           }},
          {gemm_weight_bias_gradient_kind, in_turn<gemm_weight_bias_gradient, true>}};
}

}  // namespace gpubench

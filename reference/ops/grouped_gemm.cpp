#include "reference/ops/grouped_gemm.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_operands(const Program& program, OpKind op, ValueId a, ValueId b, ValueId sizes) {
  expect_axes(op, program.spec(a), 2, "[rows, columns]");
  expect_float(op, program.spec(a));
  expect_dtype(op, program.spec(b), program.spec(a).dtype);
  expect_axes(op, program.spec(sizes), 1, "[groups]");
  expect_dtype(op, program.spec(sizes), DType::i32);
}

}  // namespace

ValueId grouped_gemm(Program& program, const GroupedGemm& attributes, const Math& math, std::string label, ValueId a,
                     ValueId b, ValueId sizes, std::optional<ValueId> into) {
  constexpr OpKind op = grouped_gemm_kind;
  expect_operands(program, op, a, b, sizes);
  const TensorSpec rows = program.spec(a);
  const TensorSpec weights = program.spec(b);
  expect_axes(op, weights, 3, attributes.transpose_b ? "[groups, n, k]" : "[groups, k, n]");
  const std::int64_t groups = program.spec(sizes).shape[0], k = rows.shape[1];
  const std::int64_t n = weights.shape[attributes.transpose_b ? 1 : 2];
  expect_shape(op, weights, attributes.transpose_b ? Shape{groups, n, k} : Shape{groups, k, n});
  const ValueId c = output_or_reserve(program, op, into, a, label, gradient_type(rows.dtype), {rows.shape[0], n},
                                      role_of_result(program, {a, b}));
  program.append({op, attributes, math, {a, b, sizes}, {c}, std::move(label)});
  return c;
}

ValueId grouped_gemm_backward_weight(Program& program, const Math& math, std::string label, ValueId a, ValueId b,
                                     ValueId sizes, std::optional<ValueId> into) {
  constexpr OpKind op = grouped_gemm_backward_weight_kind;
  expect_operands(program, op, a, b, sizes);
  const TensorSpec left = program.spec(a);
  const TensorSpec right = program.spec(b);
  expect_axes(op, right, 2, "[rows, columns]");
  expect_shape(op, right, {left.shape[0], right.shape[1]});
  const ValueId c = output_or_reserve(program, op, into, a, label, gradient_type(left.dtype),
                                      {program.spec(sizes).shape[0], left.shape[1], right.shape[1]}, Role::gradient);
  program.append({op, {}, math, {a, b, sizes}, {c}, std::move(label)});
  return c;
}

Builders grouped_gemm_builders() {
  return {{grouped_gemm_kind, in_turn<grouped_gemm, true>},
          {grouped_gemm_backward_weight_kind, in_turn<grouped_gemm_backward_weight, true>}};
}

}  // namespace gpubench

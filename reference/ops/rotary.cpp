#include "reference/ops/rotary.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_contiguous_heads(const TensorSpec& spec) {
  if (spec.layout.blocks.empty() && spec.layout.strides.back() == 1) return;
  refuse_shape(rotary_kind, spec.name, spec.shape, " and layout " + spec.layout.to_string(spec.shape),
               "a contiguous last axis");
}

}  // namespace

RotaryExtents rotary_extents(const TensorSpec& x) {
  constexpr std::string_view expected = "[b, s, heads, d] with at least one element and an even d";
  expect_axes(rotary_kind, x, 4, expected);
  if (x.shape[3] % 2 != 0) refuse_shape(rotary_kind, x.name, x.shape, "", expected);
  return {x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
}

ValueId rotary(Program& program, const Rotary& attributes, const Math& math, std::string label, ValueId x,
               const RotaryTables& tables, const std::optional<ValueId>& into) {
  const TensorSpec data = program.spec(x);
  const RotaryExtents e = rotary_extents(data);
  expect_float(rotary_kind, data);
  expect_contiguous_heads(data);
  for (const ValueId table : {tables.cos, tables.sin})
    expect_tensor(program, rotary_kind, table, {e.s, e.d / 2}, statistic_type(data.dtype));
  const ValueId y =
      output_or_reserve(program, rotary_kind, into, x, label, data.dtype, data.shape, role_of_result(program, {x}));
  expect_dtype(rotary_kind, program.spec(y), data.dtype);
  expect_contiguous_heads(program.spec(y));
  program.append({rotary_kind, attributes, math, {x, tables.cos, tables.sin}, {y}, std::move(label)});
  return y;
}

Builders rotary_builders() { return {{rotary_kind, in_turn<rotary>}}; }

}  // namespace gpubench

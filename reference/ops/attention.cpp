#include "reference/ops/attention.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

constexpr OpKind attention{"attention"};

void expect_like(OpKind op, const TensorSpec& spec, const TensorSpec& other) {
  expect_shape(op, spec, other.shape);
  expect_dtype(op, spec, other.dtype);
}

// Extents, types and layouts of q, k and v.
AttentionExtents check_operands(OpKind op, const TensorSpec& q, const TensorSpec& k, const TensorSpec& v) {
  const AttentionExtents e = extents_of(q.shape, k.shape, v.shape);
  expect_float(op, q);
  for (const TensorSpec* spec : {&q, &k, &v}) {
    expect_axes(op, *spec, 4, "at least one element");
    expect_dtype(op, *spec, q.dtype);
    if (!spec->layout.blocks.empty() || spec->layout.strides.back() != 1) {
      refuse_shape(op, spec->name, spec->shape, " and layout " + spec->layout.to_string(spec->shape),
                   "a contiguous last axis");
    }
  }
  return e;
}

}  // namespace

AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v) {
  if (q.rank() != 4) refuse_shape(attention, "q", q, "", "[b, s, query heads, d]");
  if (k.rank() != 4 || k[0] != q[0] || k[1] != q[1] || k[3] != q[3]) {
    const std::string wanted =
        std::to_string(q[0]) + ", " + std::to_string(q[1]) + ", kv heads, " + std::to_string(q[3]);
    refuse_shape(attention, "k", k, "", "[" + wanted + "] to go with q " + q.to_string());
  }
  if (v != k) refuse_shape(attention, "v", v, "", k.to_string() + ", the shape of k");
  if (k[2] < 1 || q[2] % k[2] != 0) {
    refuse_shape(attention, "k", k, "",
                 "a number of kv heads that divides the " + std::to_string(q[2]) + " query heads");
  }
  return {q[0], q[1], q[2], k[2], q[3]};
}

AttentionForward attention_forward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                   ValueId q, ValueId k, ValueId v) {
  const AttentionExtents e = check_operands(attention_forward_kind, program.spec(q), program.spec(k), program.spec(v));
  const DType type = program.spec(q).dtype;
  const ValueId o = reserve_output(program, q, label + ".o", type, {e.b, e.s, e.hq, e.d}, Role::activation);
  const ValueId lse =
      reserve_output(program, q, label + ".lse", statistic_type(type), {e.b, e.hq, e.s}, Role::statistic);
  program.append({attention_forward_kind, attributes, math, {q, k, v}, {o, lse}, std::move(label)});
  return {o, lse};
}

AttentionBackward attention_backward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                     ValueId d_o, ValueId q, ValueId k, ValueId v, ValueId o, ValueId lse,
                                     const std::optional<std::array<ValueId, 3>>& into) {
  const OpKind op = attention_backward_kind;
  const AttentionExtents e = check_operands(op, program.spec(q), program.spec(k), program.spec(v));
  expect_like(op, program.spec(o), program.spec(q));
  expect_like(op, program.spec(d_o), program.spec(q));
  expect_shape(op, program.spec(lse), {e.b, e.hq, e.s});
  expect_dtype(op, program.spec(lse), statistic_type(program.spec(q).dtype));

  std::array<ValueId, 3> gradients;
  if (into) {
    gradients = *into;
    check_operands(op, program.spec(gradients[0]), program.spec(gradients[1]), program.spec(gradients[2]));
    for (const auto& [gradient, like] :
         {std::pair{gradients[0], q}, std::pair{gradients[1], k}, std::pair{gradients[2], v}}) {
      expect_like(op, program.spec(gradient), program.spec(like));
    }
  } else {
    const auto reserve = [&](const char* suffix, ValueId like) {
      const TensorSpec spec = program.spec(like);
      return reserve_output(program, like, label + suffix, spec.dtype, spec.shape, Role::gradient);
    };
    gradients = {reserve(".dq", q), reserve(".dk", k), reserve(".dv", v)};
  }
  program.append({attention_backward_kind,
                  attributes,
                  math,
                  {d_o, q, k, v, o, lse},
                  {gradients[0], gradients[1], gradients[2]},
                  std::move(label)});
  return {gradients[0], gradients[1], gradients[2]};
}

}  // namespace gpubench

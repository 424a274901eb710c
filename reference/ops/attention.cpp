#include "reference/ops/attention.h"

#include <cmath>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

constexpr OpKind attention{"attention"};

void expect_like(OpKind op, const TensorSpec& spec, const TensorSpec& other) {
  expect_shape(op, spec, other.shape);
  expect_dtype(op, spec, other.dtype);
}

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

Attention check_options(OpKind op, const Program& program, Attention attributes, const AttentionOptions& options,
                        const TensorSpec& k, const AttentionExtents& e, DType type) {
  const auto expect = [op](bool holds, const std::string& what) {
    if (!holds) throw ProgramError(std::string(op.name) + ": " + what);
  };
  expect(attributes.window == 0 || (attributes.window > 0 && attributes.causal),
         "window is " + std::to_string(attributes.window) + "; expected a number of keys, and causal attention");
  expect(attributes.softcap >= 0.0 && std::isfinite(attributes.softcap),
         "softcap is " + std::to_string(attributes.softcap) + "; expected a positive number, or 0 for none");
  attributes.sinks = options.sinks.has_value();
  attributes.documents = options.documents.has_value();
  if (options.sinks) expect_tensor(program, op, *options.sinks, {e.hq}, statistic_type(type));
  if (options.documents) {
    const TensorSpec& documents = program.spec(*options.documents);
    expect_dtype(op, documents, DType::i32);
    expect_axes(op, documents, 2, "[" + std::to_string(e.b) + ", boundaries]");
    if (documents.shape[0] != e.b) {
      refuse_shape(op, documents.name, documents.shape, "", "[" + std::to_string(e.b) + ", boundaries]");
    }
    if (e.s != e.t) {
      refuse_shape(op, k.name, k.shape, "", "as many keys as the " + std::to_string(e.s) + " queries of the documents");
    }
  }
  return attributes;
}

void append_options(std::vector<ValueId>& inputs, const AttentionOptions& options) {
  if (options.sinks) inputs.push_back(*options.sinks);
  if (options.documents) inputs.push_back(*options.documents);
}

AttentionForward place_forward(OpKind op, Program& program, ValueId like, const std::string& label, DType type,
                               const Shape& shape, const std::optional<AttentionForward>& into) {
  const Shape rows{shape[0], shape[2], shape[1]};
  if (!into) {
    const ValueId o = reserve_output(program, like, label + ".o", type, shape, Role::activation);
    return {o, reserve_output(program, like, label + ".lse", statistic_type(type), rows, Role::statistic)};
  }
  expect_like(op, program.spec(into->o), tensor("o", type, shape, Role::activation));
  expect_like(op, program.spec(into->lse), tensor("lse", statistic_type(type), rows, Role::statistic));
  return *into;
}

}  // namespace

AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v) {
  if (q.rank() != 4) refuse_shape(attention, "q", q, "", "[b, s, query heads, d]");
  if (k.rank() != 4 || k[0] != q[0] || k[3] != q[3]) {
    const std::string wanted = std::to_string(q[0]) + ", t, kv heads, " + std::to_string(q[3]);
    refuse_shape(attention, "k", k, "", "[" + wanted + "] to go with q " + q.to_string());
  }
  if (v.rank() != 4 || v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) {
    refuse_shape(attention, "v", v, "", k.to_string() + ", the shape of k except for the last axis");
  }
  if (k[2] < 1 || q[2] % k[2] != 0) {
    refuse_shape(attention, "k", k, "",
                 "a number of kv heads that divides the " + std::to_string(q[2]) + " query heads");
  }
  return {q[0], q[1], q[2], k[2], q[3], k[1], v[3]};
}

AttentionForward attention_forward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                   ValueId q, ValueId k, ValueId v, const AttentionOptions& options,
                                   const std::optional<AttentionForward>& into) {
  const OpKind op = attention_forward_kind;
  const AttentionExtents e = check_operands(op, program.spec(q), program.spec(k), program.spec(v));
  const DType type = program.spec(q).dtype;
  const Attention checked = check_options(op, program, attributes, options, program.spec(k), e, type);
  const AttentionForward out = place_forward(op, program, q, label, type, {e.b, e.s, e.hq, e.d_v}, into);
  std::vector<ValueId> inputs{q, k, v};
  append_options(inputs, options);
  program.append({op, checked, math, std::move(inputs), {out.o, out.lse}, std::move(label)});
  return out;
}

AttentionForward attention_merge(Program& program, const Math& math, std::string label, const AttentionForward& one,
                                 const AttentionForward& other, const std::optional<AttentionForward>& into) {
  constexpr OpKind op = attention_merge_kind;
  const TensorSpec o = program.spec(one.o);
  expect_axes(op, o, 4, "[b, s, query heads, d]");
  expect_float(op, o);
  const TensorSpec lse = tensor("lse", statistic_type(o.dtype), {o.shape[0], o.shape[2], o.shape[1]}, Role::statistic);
  for (const AttentionForward& each : {one, other}) {
    expect_like(op, program.spec(each.o), o);
    expect_like(op, program.spec(each.lse), lse);
  }
  const AttentionForward out = place_forward(op, program, one.o, label, o.dtype, o.shape, into);
  program.append({op, {}, math, {one.o, one.lse, other.o, other.lse}, {out.o, out.lse}, std::move(label)});
  return out;
}

AttentionBackward attention_backward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                     ValueId d_o, ValueId q, ValueId k, ValueId v, ValueId o, ValueId lse,
                                     const AttentionOptions& options, const AttentionGradients& into) {
  const OpKind op = attention_backward_kind;
  const AttentionExtents e = check_operands(op, program.spec(q), program.spec(k), program.spec(v));
  const DType type = program.spec(q).dtype;
  const Attention checked = check_options(op, program, attributes, options, program.spec(k), e, type);
  for (const ValueId of_o : {o, d_o}) expect_tensor(program, op, of_o, {e.b, e.s, e.hq, e.d_v}, type);
  expect_tensor(program, op, lse, {e.b, e.hq, e.s}, statistic_type(type));

  const auto place = [&](const char* suffix, ValueId like, const std::optional<ValueId>& given) {
    if (!given) return reserve_like(program, like, label + suffix, Role::gradient);
    expect_like(op, program.spec(*given), program.spec(like));
    return *given;
  };
  AttentionBackward gradients{place(".dq", q, into.dq), place(".dk", k, into.dk), place(".dv", v, into.dv), {}};
  check_operands(op, program.spec(gradients.dq), program.spec(gradients.dk), program.spec(gradients.dv));
  std::vector<ValueId> inputs{d_o, q, k, v, o, lse};
  append_options(inputs, options);
  std::vector<ValueId> outputs{gradients.dq, gradients.dk, gradients.dv};
  if (options.sinks) {
    gradients.dsinks = place(".dsinks", *options.sinks, into.dsinks);
    outputs.push_back(*gradients.dsinks);
  }
  program.append({op, checked, math, std::move(inputs), std::move(outputs), std::move(label)});
  return gradients;
}

Builders attention_builders() {
  return {{attention_backward_kind, in_turn<attention_backward>},
          {attention_forward_kind, in_turn<attention_forward>},
          {attention_merge_kind, in_turn<attention_merge>}};
}

}  // namespace gpubench

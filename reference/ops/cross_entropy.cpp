#include "reference/ops/cross_entropy.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_logits_and_labels(OpKind op, const TensorSpec& logits, const TensorSpec& labels) {
  expect_axes(op, logits, 2, "[rows, classes]");
  expect_float(op, logits);
  expect_shape(op, labels, Shape{logits.shape[0]});
  expect_dtype(op, labels, DType::i32);
}

/// Throws ProgramError unless `here` classes are a part of the attributes' classes.
void expect_part(OpKind op, const CrossEntropy& attributes, std::int64_t here) {
  const auto [first, all] = std::pair{attributes.first, attributes.all_classes(here)};
  if (first >= 0 && first <= all - here) return;
  throw ProgramError(std::string(op.name) + ": classes " + std::to_string(first) + " to " +
                     std::to_string(first + here - 1) + " are not among " + std::to_string(all));
}

void complete(Program& program, OpCall call, CrossEntropy attributes, std::optional<ValueId> dloss,
              std::optional<ValueId> count) {
  if (!(attributes.label_smoothing >= 0.0 && attributes.label_smoothing <= 1.0)) {
    throw ProgramError(std::string(call.kind.name) + ": label_smoothing is not in [0, 1]");
  }
  const bool of_part = call.kind == cross_entropy_partial_kind || call.kind == cross_entropy_backward_kind;
  if (!of_part && (attributes.first != 0 || attributes.classes != 0))
    throw ProgramError(std::string(call.kind.name) + ": needs all classes; expected no 'first' and no 'classes'");
  if (count && !attributes.ignores)
    throw ProgramError(std::string(call.kind.name) +
                       ": a count is given, but no labels are ignored; expected 'ignores'");
  for (const std::optional<ValueId>& number : {dloss, count}) {
    if (!number) continue;
    expect_float_tensor(program, call.kind, *number, {1});
    call.inputs.push_back(*number);
  }
  attributes.scaled = dloss.has_value();
  attributes.given_count = count.has_value();
  call.attributes = attributes;
  program.append(std::move(call));
}

/// f32 for all logits but f64, whose loss is f64 (fp64 programs).
CrossEntropyForward reserve_loss(Program& program, const std::string& label, ValueId logits, ValueId labels) {
  const DType wide = statistic_type(program.spec(logits).dtype);
  const Shape rows = program.spec(labels).shape;
  const ValueId loss = reserve_output(program, logits, label + ".loss", wide, Shape{1}, Role::scalar);
  return {loss, reserve_output(program, logits, label + ".lse", wide, rows, Role::statistic)};
}

ValueId reserve_gradient(Program& program, const std::string& name, ValueId logits, bool in_place) {
  if (in_place) return program.update(logits, program.unique_name(name));
  return reserve_like(program, logits, name, Role::gradient);
}

}  // namespace

CrossEntropyForward cross_entropy_forward(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels, const CrossEntropy& attributes,
                                          std::optional<ValueId> count) {
  expect_logits_and_labels(cross_entropy_forward_kind, program.spec(logits), program.spec(labels));
  const CrossEntropyForward out = reserve_loss(program, label, logits, labels);
  OpCall call{cross_entropy_forward_kind, {}, math, {logits, labels}, {out.loss, out.lse}, std::move(label)};
  complete(program, std::move(call), attributes, {}, count);
  return out;
}

ValueId cross_entropy_backward(Program& program, const Math& math, std::string label, ValueId logits, ValueId labels,
                               ValueId lse, bool in_place, CrossEntropy attributes, std::optional<ValueId> dloss,
                               std::optional<ValueId> count) {
  const TensorSpec spec = program.spec(logits);
  expect_logits_and_labels(cross_entropy_backward_kind, spec, program.spec(labels));
  expect_float_tensor(program, cross_entropy_backward_kind, lse, {spec.shape[0]});
  expect_part(cross_entropy_backward_kind, attributes, spec.shape[1]);
  const ValueId dlogits = reserve_gradient(program, label, logits, in_place);
  OpCall call{cross_entropy_backward_kind, {}, math, {logits, labels, lse}, {dlogits}, std::move(label)};
  complete(program, std::move(call), attributes, dloss, count);
  return dlogits;
}

CrossEntropyPartial cross_entropy_partial(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels, const CrossEntropy& attributes) {
  constexpr OpKind op = cross_entropy_partial_kind;
  const TensorSpec spec = program.spec(logits);
  expect_logits_and_labels(op, spec, program.spec(labels));
  expect_part(op, attributes, spec.shape[1]);
  const auto of_rows = [&](const char* suffix) {
    return reserve_output(program, logits, label + suffix, statistic_type(spec.dtype), Shape{spec.shape[0]},
                          Role::statistic);
  };
  const ValueId lse = of_rows(".lse");
  const CrossEntropyPartial out{lse, of_rows(".score")};
  complete(program, {op, {}, math, {logits, labels}, {out.lse, out.score}, std::move(label)}, attributes, {}, {});
  return out;
}

CrossEntropyForward cross_entropy_combine(Program& program, const Math& math, std::string label, ValueId lses,
                                          ValueId scores, ValueId labels, const CrossEntropy& attributes,
                                          std::optional<ValueId> count) {
  constexpr OpKind op = cross_entropy_combine_kind;
  const TensorSpec parts = program.spec(lses);
  expect_axes(op, parts, 2, "[parts, rows]");
  expect_float(op, parts);
  expect_tensor(program, op, scores, parts.shape, parts.dtype);
  expect_tensor(program, op, labels, {parts.shape[1]}, DType::i32);
  const CrossEntropyForward out = reserve_loss(program, label, lses, labels);
  complete(program, {op, {}, math, {lses, scores, labels}, {out.loss, out.lse}, std::move(label)}, attributes, {},
           count);
  return out;
}

CrossEntropyForwardBackward cross_entropy_forward_backward(Program& program, const Math& math, std::string label,
                                                           ValueId logits, ValueId labels, bool in_place,
                                                           CrossEntropy attributes, std::optional<ValueId> dloss,
                                                           std::optional<ValueId> count) {
  const OpKind op = cross_entropy_forward_backward_kind;
  expect_logits_and_labels(op, program.spec(logits), program.spec(labels));
  const auto [loss, lse] = reserve_loss(program, label, logits, labels);
  const ValueId dlogits = reserve_gradient(program, label + ".dlogits", logits, in_place);
  OpCall call{op, {}, math, {logits, labels}, {loss, lse, dlogits}, std::move(label)};
  complete(program, std::move(call), attributes, dloss, count);
  return {loss, lse, dlogits};
}

ValueId count_labels(Program& program, const CountLabels& attributes, const Math& math, std::string label,
                     ValueId labels, DType wide) {
  constexpr OpKind op = count_labels_kind;
  expect_dtype(op, program.spec(labels), DType::i32);
  if (attributes.parts < 1)
    throw ProgramError("count_labels: parts = " + std::to_string(attributes.parts) + "; expected at least 1");
  const ValueId y = reserve_output(program, labels, label, wide, {1}, Role::scalar);
  program.append({op, attributes, math, {labels}, {y}, std::move(label)});
  return y;
}

Builders cross_entropy_builders() {
  return {{count_labels_kind, in_turn<count_labels>},
          {cross_entropy_backward_kind,
           [](const BuilderArguments& a) {
             cross_entropy_backward(a.program, a.call.math, a.call.label, a.in("logits"), a.in("labels"), a.in("lse"),
                                    false, a.attributes<CrossEntropy>(), a.optional("dloss"), a.optional("count"));
           }},
          {cross_entropy_combine_kind, in_turn<cross_entropy_combine>},
          {cross_entropy_forward_kind, in_turn<cross_entropy_forward>},
          {cross_entropy_forward_backward_kind,
           [](const BuilderArguments& a) {
             cross_entropy_forward_backward(a.program, a.call.math, a.call.label, a.in("logits"), a.in("labels"), false,
                                            a.attributes<CrossEntropy>(), a.optional("dloss"), a.optional("count"));
           }},
          {cross_entropy_partial_kind, in_turn<cross_entropy_partial>}};
}

}  // namespace gpubench

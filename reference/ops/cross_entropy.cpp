#include "reference/ops/cross_entropy.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

void expect_logits_and_labels(OpKind op, const TensorSpec& logits, const TensorSpec& labels) {
  expect_axes(op, logits, 2, "[rows, classes]");
  expect_float(op, logits);
  expect_shape(op, labels, Shape{logits.shape[0]});
  expect_dtype(op, labels, DType::i32);
}

}  // namespace

std::string describe(const CrossEntropy&) { return {}; }

CrossEntropyForward cross_entropy_forward(Program& program, const Math& math, std::string label, ValueId logits,
                                          ValueId labels) {
  expect_logits_and_labels(cross_entropy_forward_kind, program.spec(logits), program.spec(labels));
  // f32 whatever the logits are; in fp64 programs (textbook against textbook) f64.
  const DType wide = program.spec(logits).dtype == DType::f64 ? DType::f64 : DType::f32;
  const Shape rows = program.spec(labels).shape;
  const ValueId loss = reserve_output(program, label + ".loss", wide, Shape{1}, Role::scalar);
  const ValueId lse = reserve_output(program, label + ".lse", wide, rows, Role::statistic);
  program.append({cross_entropy_forward_kind, CrossEntropy{}, math, {logits, labels}, {loss, lse}, std::move(label)});
  return {loss, lse};
}

ValueId cross_entropy_backward(Program& program, const Math& math, std::string label, ValueId logits, ValueId labels,
                               ValueId lse, bool in_place) {
  const TensorSpec spec = program.spec(logits);
  expect_logits_and_labels(cross_entropy_backward_kind, spec, program.spec(labels));
  expect_shape(cross_entropy_backward_kind, program.spec(lse), Shape{spec.shape[0]});
  expect_float(cross_entropy_backward_kind, program.spec(lse));
  const ValueId dlogits = in_place ? program.update(logits, program.unique_name(label))
                                   : reserve_output(program, label, spec.dtype, spec.shape, Role::gradient);
  program.append(
      {cross_entropy_backward_kind, CrossEntropy{}, math, {logits, labels, lse}, {dlogits}, std::move(label)});
  return dlogits;
}

}  // namespace gpubench

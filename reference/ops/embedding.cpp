#include "reference/ops/embedding.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

void expect_tokens(OpKind op, const TensorSpec& tokens) {
  expect_axes(op, tokens, 1, "[t]");
  expect_dtype(op, tokens, DType::i32);
}

}  // namespace

ValueId embedding_forward(Program& program, std::string label, ValueId table, ValueId tokens) {
  const TensorSpec rows = program.spec(table);
  expect_axes(embedding_forward_kind, rows, 2, "[vocabulary, h]");
  expect_tokens(embedding_forward_kind, program.spec(tokens));
  const Shape shape{program.spec(tokens).shape[0], rows.shape[1]};
  const ValueId y = reserve_output(program, tokens, label, rows.dtype, shape, Role::activation);
  program.append({embedding_forward_kind, {}, Math{}, {table, tokens}, {y}, std::move(label)});
  return y;
}

ValueId embedding_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                           std::int64_t vocabulary) {
  const TensorSpec gradient = program.spec(dy);
  expect_float(embedding_backward_kind, gradient);
  expect_tokens(embedding_backward_kind, program.spec(tokens));
  const std::string t = std::to_string(program.spec(tokens).shape[0]);
  expect_axes(embedding_backward_kind, gradient, 2, "[" + t + ", h]");
  expect_shape(embedding_backward_kind, gradient, Shape{program.spec(tokens).shape[0], gradient.shape[1]});
  if (vocabulary < 1) {
    throw ProgramError("embedding_backward: vocabulary = " + std::to_string(vocabulary) + "; expected at least 1");
  }
  const ValueId dtable =
      reserve_output(program, dy, label, gradient.dtype, Shape{vocabulary, gradient.shape[1]}, Role::gradient);
  program.append({embedding_backward_kind, {}, math, {dy, tokens}, {dtable}, std::move(label)});
  return dtable;
}

}  // namespace gpubench

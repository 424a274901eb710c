#include "reference/ops/embedding.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_tokens(OpKind op, const TensorSpec& tokens) {
  expect_axes(op, tokens, 1, "[t]");
  expect_dtype(op, tokens, DType::i32);
}

void expect_gradient(const Program& program, OpKind op, ValueId dy, ValueId tokens) {
  const TensorSpec& gradient = program.spec(dy);
  expect_float(op, gradient);
  expect_tokens(op, program.spec(tokens));
  const std::int64_t t = program.spec(tokens).shape[0];
  expect_axes(op, gradient, 2, "[" + std::to_string(t) + ", h]");
  expect_shape(op, gradient, Shape{t, gradient.shape[1]});
}

/// Throws ProgramError if the `rows` of the table exceed the vocabulary, or for a padding token outside it.
void expect_rows(OpKind op, const TableRows& attributes, std::int64_t rows) {
  const std::int64_t first = attributes.first, vocabulary = attributes.all_rows(rows);
  const auto refuse = [&](const std::string& what) {
    throw ProgramError(std::string(op.name) + ": " + what + " in a vocabulary of " + std::to_string(vocabulary));
  };
  if (first < 0 || first > vocabulary - rows)
    refuse("rows " + std::to_string(first) + " to " + std::to_string(first + rows - 1) + " are not");
  if (attributes.padding_token < -1 || attributes.padding_token >= vocabulary)
    refuse("padding_token " + std::to_string(attributes.padding_token) + " is not");
}

}  // namespace

ValueId embedding_forward(Program& program, std::string label, ValueId table, ValueId tokens,
                          const TableRows& attributes) {
  const TensorSpec rows = program.spec(table);
  expect_axes(embedding_forward_kind, rows, 2, "[rows, h]");
  expect_rows(embedding_forward_kind, attributes, rows.shape[0]);
  expect_tokens(embedding_forward_kind, program.spec(tokens));
  const Shape shape{program.spec(tokens).shape[0], rows.shape[1]};
  const ValueId y = reserve_output(program, tokens, label, rows.dtype, shape, Role::activation);
  program.append({embedding_forward_kind, attributes, Math{}, {table, tokens}, {y}, std::move(label)});
  return y;
}

ValueId embedding_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                           std::int64_t rows, const TableRows& attributes) {
  expect_gradient(program, embedding_backward_kind, dy, tokens);
  const TensorSpec gradient = program.spec(dy);
  if (rows < 1) throw ProgramError("embedding_backward: rows = " + std::to_string(rows) + "; expected at least 1");
  expect_rows(embedding_backward_kind, attributes, rows);
  const ValueId dtable =
      reserve_output(program, dy, label, gradient.dtype, Shape{rows, gradient.shape[1]}, Role::gradient);
  program.append({embedding_backward_kind, attributes, math, {dy, tokens}, {dtable}, std::move(label)});
  return dtable;
}

ValueId embedding_backward_add(Program& program, const Math& math, std::string label, ValueId dy, ValueId tokens,
                               ValueId dtable, const TableRows& attributes) {
  constexpr OpKind kind = embedding_backward_add_kind;
  expect_gradient(program, kind, dy, tokens);
  const TensorSpec gradient = program.spec(dy);
  expect_axes(kind, program.spec(dtable), 2, "[rows, h]");
  expect_rows(kind, attributes, program.spec(dtable).shape[0]);
  expect_tensor(program, kind, dtable, {program.spec(dtable).shape[0], gradient.shape[1]}, gradient.dtype);
  const ValueId sum = program.update(dtable, program.spec(dtable).name + "'");
  program.append({kind, attributes, math, {dy, tokens, dtable}, {sum}, std::move(label)});
  return sum;
}

Builders embedding_builders() {
  return {{embedding_backward_kind,
           [](const BuilderArguments& a) {
             embedding_backward(a.program, a.call.math, a.call.label, a.in("dy"), a.in("tokens"),
                                a.shape_of_output(2, "[rows, h]")[0], a.attributes<TableRows>());
           }},
          {embedding_backward_add_kind, in_turn<embedding_backward_add>},
          {embedding_forward_kind, in_turn<embedding_forward>}};
}

}  // namespace gpubench

// Look-ups are exact. Scattered sums are Rule G with one term per occurrence of the token. Exactly zero: rows of absent
// tokens, the padding token's row, and look-ups in a part of a table without the row. A token outside the vocabulary
// has no correct result: NaN.
#include <algorithm>
#include <limits>
#include <utility>

#include "reference/ops/definition.h"
#include "reference/ops/embedding.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

class EmbeddingForward : public DefinitionOf<embedding_forward_kind> {
 public:
  // Rows of absent tokens are not read; rows of repeated tokens count each time.
  Cost cost(const CallSpecs& op) const override {
    return {0.0, 2.0 * bytes_moved(op.outputs) + bytes_moved(op.inputs[1])};
  }

  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 4.0); }

  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& table = operands.inputs[0];
    const auto& attributes = operands.call.attributes.as<TableRows>();
    const std::int64_t rows = table.shape()[0], h = table.shape()[1];
    std::vector<double> values;
    judge_rows(h, wanted, judged, [&](std::int64_t position, auto elements, std::span<Expected> of_row) {
      const auto token = static_cast<std::int64_t>(operands.inputs[1][position]);
      const std::int64_t row = token - attributes.first;
      values.assign(elements.size(), attributes.knows(token, rows) ? 0.0 : std::numeric_limits<double>::quiet_NaN());
      if (row >= 0 && row < rows) gather(table, elements, (row - position) * h, values);
      for (std::size_t i = 0; i < values.size(); ++i) of_row[i] = moved(values[i]);
    });
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId table = call.inputs[0];
    if (!dy || !tape.wanted(table)) return;
    tape.contribute(table, embedding_backward(program, call.math, tape.label(call, "backward"), *dy, call.inputs[1],
                                              program.spec(table).shape[0], call.attributes.as<TableRows>()));
  }
};

// Sorted (row, position) of the tokens, for bisection by row; without padding tokens.
using Occurrences = std::vector<std::pair<std::int64_t, std::int64_t>>;

Occurrences occurrences_of(const TensorView& tokens, const TableRows& table, std::int64_t first_row,
                           std::int64_t last_row) {
  Occurrences found;
  for_each_chunk(tokens, [&](std::int64_t position, std::span<const double> values) {
    for (const double value : values) {
      const auto token = static_cast<std::int64_t>(value);
      const std::int64_t row = token - table.first;
      if (row >= first_row && row <= last_row && token != table.padding_token) found.emplace_back(row, position);
      ++position;
    }
  });
  std::sort(found.begin(), found.end());
  return found;
}

template <const OpKind& scatter_kind>
class EmbeddingBackward : public DefinitionOf<scatter_kind> {
 public:
  // With `adds`, also the work of the add; rows of absent tokens need not be read or written.
  Cost cost(const CallSpecs& op) const override {
    const double flop = elements_of(op.inputs[0]);
    if (!adds) return {flop, op.bytes()};
    const double rows = std::min(bytes_moved(op.inputs[0]), bytes_moved(op.outputs[0]));
    return {flop + elements_of(op.outputs[0]), bytes_moved(op.inputs.first(2)) + 2.0 * rows};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    const double occurrences = static_cast<double>(op.inputs[0].shape[0]) / static_cast<double>(op.outputs[0].shape[0]);
    return element_units(op.outputs[0].shape, 4.0 + 4.0 * occurrences);
  }

  std::string bound(const CallSpecs& op, int) const override {
    return sum_error_bound_text(
        adds ? "K = 1 + occurrences of the token; exact for K = 1" : "K = occurrences of the token", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& dy = operands.inputs[0];
    const std::int64_t h = dy.shape()[1];
    const double u = accumulator_roundoff(operands.call.math);
    if (wanted.empty()) return;
    const Occurrences occurrences = occurrences_of(operands.inputs[1], operands.call.attributes.as<TableRows>(),
                                                   wanted.front() / h, wanted.back() / h);
    std::vector<ProductSum> sums;
    std::vector<double> values;
    judge_rows(h, wanted, judged, [&](std::int64_t row, auto elements, std::span<Expected> of_row) {
      const std::size_t count = elements.size();
      sums.assign(count, {});
      values.resize(count);
      if (adds) {
        gather(operands.inputs[2], elements, 0, values);
        for (std::size_t i = 0; i < count; ++i) sums[i].add(values[i]);
      }
      const auto first = std::lower_bound(occurrences.begin(), occurrences.end(), std::pair{row, std::int64_t{0}});
      for (auto occurrence = first; occurrence != occurrences.end() && occurrence->first == row; ++occurrence) {
        gather(dy, elements, (occurrence->second - row) * h, values);
        for (std::size_t i = 0; i < count; ++i) sums[i].add(values[i]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const bool alone = adds && sums[i].terms == 1.0;  // unchanged
        of_row[i] = {sums[i].value, alone ? 0.0 : sum_error_bound(sums[i], u)};
      }
    });
  }

 private:
  static constexpr bool adds = scatter_kind.name == embedding_backward_add_kind.name;
};

}  // namespace

Definitions embedding_definitions() {
  return definitions_of<EmbeddingForward, EmbeddingBackward<embedding_backward_kind>,
                        EmbeddingBackward<embedding_backward_add_kind>>();
}

}  // namespace gpubench

// Grouping makes integers, judged bitwise as a whole. Rows move bit for bit, or are rounded once after weighting. Sums
// of a token's rows, and of a weight's products, are Rule G.
#include <cmath>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/token_groups.h"

namespace gpubench {
namespace {

class GroupTokens final : public DefinitionOf<group_tokens_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {0.0, op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return {1, op.output(output).shape.elements(), 8.0 * elements_of(op.inputs[0]), {0}};
  }

  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (wanted.empty()) return;
    const TokenGrouping& grouping = operands.call.attributes.as<TokenGrouping>();
    const std::int64_t experts = grouping.experts;
    std::vector<double> indices(static_cast<std::size_t>(operands.inputs[0].shape().elements()));
    operands.inputs[0].read(0, indices);
    const auto group_of = [&](std::size_t pair) { return static_cast<std::int64_t>(indices[pair]) - grouping.first; };
    const auto grouped = [&](std::size_t pair) { return group_of(pair) >= 0 && group_of(pair) < experts; };
    std::vector<std::int64_t> begins(static_cast<std::size_t>(experts) + 1);
    for (std::size_t pair = 0; pair < indices.size(); ++pair) {
      if (grouped(pair)) ++begins[static_cast<std::size_t>(group_of(pair)) + 1];
    }
    if (output == 0) {
      for (std::size_t g = 0; g < judged.size(); ++g) judged[g] = moved(static_cast<double>(begins[g + 1]));
      return;
    }
    for (std::size_t g = 1; g < begins.size(); ++g) begins[g] += begins[g - 1];
    std::fill(judged.begin(), judged.end(), moved(-1.0));
    for (std::size_t pair = 0; pair < indices.size(); ++pair) {
      if (!grouped(pair)) continue;
      const auto place = static_cast<std::size_t>(begins[static_cast<std::size_t>(group_of(pair))]++);
      if (output == 1) {
        judged[place] = moved(static_cast<double>(pair));
      } else {
        judged[pair] = moved(static_cast<double>(place));
      }
    }
  }
};

/// The other output of the group_tokens op that made `have`.
ValueId partner(const Program& program, const OpCall& call, std::string_view have, std::string_view want) {
  const std::optional<int> producer = program.value(call.input(have)).producer;
  if (!producer || program.op(*producer).kind != group_tokens_kind) {
    throw ProgramError(std::string(call.kind.name) + ": '" + program.spec(call.input(have)).name + "' of op '" +
                       call.label + "' has no " + std::string(want) + "; expected it to be made by group_tokens");
  }
  return program.op(*producer).output(want);
}

std::optional<ValueId> weights_of(const OpCall& call) {
  return call.attributes.as<TokenMove>().weighted ? std::optional(call.input("weights")) : std::nullopt;
}

class PermuteTokens final : public DefinitionOf<permute_tokens_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {op.call.attributes.as<TokenMove>().weighted ? elements_of(op.outputs[0]) : 0.0, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 6.0); }

  std::string bound(const CallSpecs& op, int) const override {
    return op.call.attributes.as<TokenMove>().weighted ? bound_text("u |y|", op.call.math) : std::string(exact_bound);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView &x = operands.input("x"), &order = operands.input("order");
    const bool weighted = operands.call.attributes.as<TokenMove>().weighted;
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t h = x.shape()[1], n = order.shape()[0], k = n / x.shape()[0];
    std::vector<double> values;
    judge_rows(h, wanted, judged, [&](std::int64_t row, auto elements, std::span<Expected> of_row) {
      const auto pair = static_cast<std::int64_t>(order[row]);
      values.assign(elements.size(), 0.0);
      const bool is_pair = pair >= 0 && pair < n;
      if (is_pair) gather(x, elements, (pair / k - row) * h, values);
      const double weight = is_pair && weighted ? operands.input("weights")[pair] : 1.0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double y = weight * values[i];
        of_row[i] = weighted ? Expected{y, u * std::fabs(y)} : moved(y);
      }
    });
  }

  void derivative(Program& program, const OpCall& forward, GradientTape& tape) const override {
    const OpCall call = forward;  // appending to the program may move the original
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy) return;
    const ValueId x = call.input("x"), places = partner(program, call, "order", "places");
    const std::optional<ValueId> weights = weights_of(call);
    if (tape.wanted(x))
      tape.contribute(x, unpermute_tokens(program, call.math, tape.label(call, "dx"), *dy, places, weights));
    if (weights && tape.wanted(*weights)) {
      tape.contribute(*weights,
                      unpermute_backward_weights(program, call.math, tape.label(call, "dweights"), *dy, places, x));
    }
  }
};

class UnpermuteTokens final : public DefinitionOf<unpermute_tokens_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const double rows = elements_of(op.input("places")) * static_cast<double>(op.outputs[0].shape[1]);
    return {(op.call.attributes.as<TokenMove>().weighted ? 2.0 : 1.0) * rows, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 6.0 * static_cast<double>(op.input("places").shape[1]));
  }

  std::string bound(const CallSpecs& op, int) const override {
    return sum_error_bound_text(op.input("places").shape[1], op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView &x = operands.input("x"), &places = operands.input("places");
    const bool weighted = operands.call.attributes.as<TokenMove>().weighted;
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t h = x.shape()[1], k = places.shape()[1];
    std::vector<double> values;
    std::vector<ProductSum> sums;
    judge_rows(h, wanted, judged, [&](std::int64_t token, auto elements, std::span<Expected> of_token) {
      values.resize(elements.size());
      sums.assign(elements.size(), {});
      for (std::int64_t pair = token * k; pair < (token + 1) * k; ++pair) {
        const auto place = static_cast<std::int64_t>(places[pair]);
        if (place < 0 || place >= x.shape()[0]) continue;
        gather(x, elements, (place - token) * h, values);
        const double weight = weighted ? operands.input("weights")[pair] : 1.0;
        for (std::size_t i = 0; i < values.size(); ++i) sums[i].add(weight * values[i]);
      }
      for (std::size_t i = 0; i < sums.size(); ++i) of_token[i] = {sums[i].value, sum_error_bound(sums[i], u)};
    });
  }

  void derivative(Program& program, const OpCall& forward, GradientTape& tape) const override {
    const OpCall call = forward;
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy) return;
    const ValueId x = call.input("x"), places = call.input("places");
    const std::optional<ValueId> weights = weights_of(call);
    if (tape.wanted(x)) {
      tape.contribute(x, permute_tokens(program, call.math, tape.label(call, "dx"), *dy,
                                        partner(program, call, "places", "order"), weights));
    }
    if (weights && tape.wanted(*weights)) {
      tape.contribute(*weights,
                      unpermute_backward_weights(program, call.math, tape.label(call, "dweights"), x, places, *dy));
    }
  }
};

class UnpermuteBackwardWeights final : public DefinitionOf<unpermute_backward_weights_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {2.0 * elements_of(op.outputs[0]) * static_cast<double>(op.inputs[0].shape[1]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 6.0 * static_cast<double>(op.inputs[0].shape[1]));
  }

  std::string bound(const CallSpecs& op, int) const override {
    return sum_error_bound_text(op.inputs[0].shape[1], op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView &x = operands.input("x"), &places = operands.input("places"), &dy = operands.input("dy");
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> row(static_cast<std::size_t>(x.shape()[1])), gradient(row.size());
    const auto h = static_cast<std::int64_t>(row.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      judged[i] = {0.0, 0.0};
      const auto place = static_cast<std::int64_t>(places[wanted[i]]);
      if (place < 0 || place >= x.shape()[0]) continue;
      x.read(place * h, row);
      dy.read(wanted[i] / places.shape()[1] * h, gradient);
      const ProductSum sum = wide_dot(row, gradient);
      judged[i] = {sum.value, sum_error_bound(sum, u)};
    }
  }
};

}  // namespace

Definitions token_groups_definitions() {
  return definitions_of<GroupTokens, PermuteTokens, UnpermuteTokens, UnpermuteBackwardWeights>();
}

}  // namespace gpubench

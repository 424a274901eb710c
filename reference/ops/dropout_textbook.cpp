// The mask is exact: a dropped element must be zero, others x times a factor. The factor 1 / (1 - p) and the product
// are rounded once each: 2 u |y|.
#include "reference/ops/shared_textbook.h"

#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/dropout.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const auto product = [](std::uint64_t a, std::uint32_t b) {
    const std::uint64_t whole = a * b;
    return std::pair(static_cast<std::uint32_t>(whole >> 32U), static_cast<std::uint32_t>(whole));
  };
  for (int round = 0; round < 10; ++round) {
    const auto [high_0, low_0] = product(0xD2511F53U, counter[0]);
    const auto [high_1, low_1] = product(0xCD9E8D57U, counter[2]);
    counter = {high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

namespace {

std::array<std::uint32_t, 2> words_of(const TensorView& view) {
  const auto word = [&](std::int64_t i) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(view[i])); };
  return {word(0), word(1)};
}

class DropoutDefinition : public DefinitionOf<dropout_kind> {
 public:
  // One product per element; random numbers are not counted.
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.outputs[0]), op.bytes()}; }

  // Philox: forty integer products and as many sums per four elements.
  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 30.0); }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("0 where dropped, else 2 u |y|", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double p = operands.call.attributes.as<Dropout>().p;
    const double u = accumulator_roundoff(operands.call.math);
    const double least = std::floor(std::ldexp(p, 32));
    const std::array key = words_of(operands.input("seed")), offset = words_of(operands.input("offset"));
    judge_elements(std::array{operands.input("x")}, wanted, judged,
                   [&](std::int64_t i, const std::array<double, 1>& x) -> Expected {
                     const auto group = static_cast<std::uint64_t>(i) / 4;
                     const std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(group),
                                                                static_cast<std::uint32_t>(group >> 32U), offset[0],
                                                                offset[1]};
                     const std::array words = philox4x32_10(counter, key);
                     if (words[static_cast<std::size_t>(i % 4)] < least) return {};
                     const double y = x[0] / (1.0 - p);
                     return {y, 2.0 * u * std::fabs(y)};
                   });
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const ValueId x = call.input("x");
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy || !tape.wanted(x)) return;
    tape.contribute(x, dropout(program, call.attributes.as<Dropout>(), call.math, tape.label(call, "backward"), *dy,
                               {call.input("seed"), call.input("offset")}, tape.destination(x)));
  }
};

}  // namespace

Definitions dropout_definitions() { return definitions_of<DropoutDefinition>(); }

}  // namespace gpubench

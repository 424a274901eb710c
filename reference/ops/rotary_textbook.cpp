// Two rounded products and their sum: at most 2u(|a c| + |b s|), since |y| <= |a c| + |b s|; less if one is fused.
// Errors of the tables' angles do not count.
#include <cmath>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/rotary.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

Expected rotated(double a, double c, double b, double s, double u) {
  return {a * c + b * s, 2.0 * u * (std::fabs(a * c) + std::fabs(b * s))};
}

class RotaryDefinition : public DefinitionOf<rotary_kind> {
 public:
  // Four products and two sums per pair.
  Cost cost(const CallSpecs& op) const override {
    const double pairs = elements_of(op.outputs[0]) / 2.0;
    return {6.0 * pairs, op.bytes()};
  }

  // A unit is one head of one token, which one row of the tables rotates.
  CheckUnits units(const CallSpecs& op, int) const override {
    const RotaryExtents e = rotary_extents(op.outputs[0]);
    CheckUnits units = element_units({e.b, e.s, e.h}, 8.0 * static_cast<double>(e.d));
    units.elements = e.d;
    return units;
  }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("2 u (|a cos| + |b sin|) of a pair a, b", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Rotary& attributes = operands.call.attributes.as<Rotary>();
    const RotaryExtents e = rotary_extents(operands.inputs[0].spec());
    const double u = accumulator_roundoff(operands.call.math);
    const double sign = attributes.inverse ? -1.0 : 1.0;
    const bool half = attributes.pairing == Rotary::Pairing::half;
    const auto pairs = static_cast<std::size_t>(e.d / 2);
    std::vector<double> x(2 * pairs);
    std::vector<double> cos(pairs);
    std::vector<double> sin(pairs);
    for (const std::int64_t row : wanted) {
      const std::int64_t position = row / e.h % e.s;
      operands.inputs[0].read({row / (e.h * e.s), position, row % e.h, 0}, 3, x);
      operands.inputs[1].read({position, 0}, 1, cos);
      operands.inputs[2].read({position, 0}, 1, sin);
      for (std::size_t i = 0; i < pairs; ++i) {
        const std::size_t first = half ? i : 2 * i;
        const std::size_t second = half ? i + pairs : 2 * i + 1;
        judged[first] = rotated(x[first], cos[i], x[second], -sign * sin[i], u);
        judged[second] = rotated(x[second], cos[i], x[first], sign * sin[i], u);
      }
      judged = judged.subspan(x.size());
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (!dy) return;
    const ValueId x = call.input("x"), cos = call.input("cos"), sin = call.input("sin");
    for (const ValueId table : {cos, sin}) {
      if (!tape.wanted(table)) continue;
      throw ProgramError("rotary: the gradient of table '" + program.spec(table).name + "' of op '" + call.label +
                         "' is wanted; expected constant tables");
    }
    if (!tape.wanted(x)) return;
    Rotary transposed = call.attributes.as<Rotary>();
    transposed.inverse = !transposed.inverse;
    tape.contribute(
        x, rotary(program, transposed, call.math, tape.label(call, "backward"), *dy, {cos, sin}, tape.destination(x)));
  }
};

}  // namespace

Definitions rotary_definitions() { return definitions_of<RotaryDefinition>(); }

}  // namespace gpubench

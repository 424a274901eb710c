// Bitwise where the scale is a power of two, as it should be: then scaling is exact, and the one rounding is the
// checker's. With any other scale the product is first rounded once in the arithmetic type.
#include <algorithm>
#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

enum Output { output_values, output_inverse, output_amax };

double largest_of(DType type) { return type == DType::f8_e4m3 ? 448.0 : 57344.0; }

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::fabs(std::frexp(value, &exponent)) == 0.5;
}

// The interval around `value`, clamped at both ends: what overflows becomes the largest number, never NaN or infinity.
// Without a bound it is a cast, bit for bit.
Expected clamped(const Expected& judged, double largest) {
  if (std::isnan(judged.value)) return judged;
  if (judged.bound == 0.0 || std::isinf(judged.value)) return moved(std::clamp(judged.value, -largest, largest));
  const double low = std::clamp(judged.value - judged.bound, -largest, largest);
  const double high = std::clamp(judged.value + judged.bound, -largest, largest);
  return {0.5 * (low + high), 0.5 * (high - low)};
}

class QuantizeDefinition final : public OpDefinition {
 public:
  OpKind kind() const override { return quantize_kind; }

  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    if (output == output_values) return element_units(op.outputs[0].shape, 4.0);
    const double work = output == output_amax ? 2.0 * elements_of(op.inputs[0]) : 1.0;
    return element_units(op.output(output).shape, work);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == output_amax) return std::string(exact_bound);
    const std::string exact = " (0 where scale is a power of two)";
    if (output == output_inverse) return bound_text("u |y|" + exact, op.call.math);
    const std::string largest = number_text(largest_of(op.call.attributes.as<Quantize>().to));
    return bound_text("u |scale x|" + exact + ", clamped to " + largest, op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double scale = operands.inputs[1][0];
    const double u = is_power_of_two(scale) ? 0.0 : accumulator_roundoff(operands.call.math);
    if (output == output_values) {
      const double largest = largest_of(operands.call.attributes.as<Quantize>().to);
      judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t, const auto& in) {
        const double y = scale * in[0];
        return clamped({y, u * std::fabs(y)}, largest);
      });
    } else if (output == output_inverse) {
      std::fill(judged.begin(), judged.end(), Expected{1.0 / scale, u / std::fabs(scale)});
    } else {
      std::fill(judged.begin(), judged.end(), moved(largest_magnitude(operands.inputs[0])));
    }
  }

  // Straight-through estimator: the gradient of x is that of the values, as if nothing had been rounded or clamped.
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[output_values]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    const bool same = program.spec(*dy).dtype == program.spec(x).dtype;
    tape.contribute(x, same ? *dy : cast(program, program.spec(x).dtype, tape.label(call, "backward"), *dy));
  }

 private:
  // NaN where any element is.
  static double largest_magnitude(const TensorView& x) {
    double largest = 0.0;
    for_each_chunk(x, [&largest](std::int64_t, std::span<const double> values) {
      for (const double value : values) {
        if (!(std::fabs(value) <= largest)) largest = std::isnan(largest) ? largest : std::fabs(value);
      }
    });
    return largest;
  }
};

}  // namespace

std::span<const OpDefinition* const> quantize_definitions() { return definitions_of<QuantizeDefinition>(); }

}  // namespace gpubench

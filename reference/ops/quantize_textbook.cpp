// Bitwise if the scale is a power of two, as intended: scaling is then exact, and the only rounding is the checker's.
// With other scales the product is first rounded once in the arithmetic type.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

enum Output { output_values, output_inverse, output_amax };

// The interval around `value`, clamped to the largest number, as overflow saturates. Without a bound: a cast.
Expected clamped(const Expected& judged, double largest) {
  if (std::isnan(judged.value)) return judged;
  if (judged.bound == 0.0 || std::isinf(judged.value)) return moved(std::clamp(judged.value, -largest, largest));
  const double low = std::clamp(judged.value - judged.bound, -largest, largest);
  const double high = std::clamp(judged.value + judged.bound, -largest, largest);
  return {0.5 * (low + high), 0.5 * (high - low)};
}

// Straight-through estimator: the gradient of x is that of the values, ignoring rounding and clamping.
void pass_straight_through(Program& program, const OpCall& call, GradientTape& tape) {
  const auto dy = incoming_gradient(call, tape, call.outputs[output_values]);
  const ValueId x = call.inputs[0];
  if (!dy || !tape.wanted(x)) return;
  const bool same = program.spec(*dy).dtype == program.spec(x).dtype;
  tape.contribute(x, same ? *dy : cast(program, program.spec(x).dtype, tape.label(call, "backward"), *dy));
}

double largest_magnitude(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) {
    if (!(std::fabs(value) <= largest)) largest = std::isnan(largest) ? largest : std::fabs(value);
  }
  return largest;
}
double largest_magnitude(const TensorView& x) {
  double largest = 0.0;
  for_each_chunk(x, [&largest](std::int64_t, std::span<const double> values) {
    const double of_chunk = largest_magnitude(values);
    if (!(of_chunk <= largest) && !std::isnan(largest)) largest = of_chunk;
  });
  return largest;
}

class QuantizeDefinition final : public DefinitionOf<quantize_kind> {
 public:
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
    const Quantize& attributes = op.call.attributes.as<Quantize>();
    if (!attributes.saturate) return std::string(exact_bound) + ", of scale x rounded once";
    return bound_text("u |scale x|" + exact + ", clamped to " + number_text(largest_finite(attributes.to)),
                      op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double scale = operands.inputs[1][0];
    const double u = is_power_of_two(scale) ? 0.0 : accumulator_roundoff(operands.call.math);
    if (output == output_values) {
      const Quantize& attributes = operands.call.attributes.as<Quantize>();
      const double largest = largest_finite(attributes.to);
      judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t, const auto& in) {
        const double y = scale * in[0];
        if (attributes.saturate) return clamped({y, u * std::fabs(y)}, largest);
        // At the type's limit the result is finite or NaN, which no interval covers. The product is rounded once.
        return moved(round_to(attributes.to, round_to(operands.call.math.accumulate, y)));
      });
    } else if (output == output_inverse) {
      std::fill(judged.begin(), judged.end(), Expected{1.0 / scale, u / std::fabs(scale)});
    } else {
      std::fill(judged.begin(), judged.end(), moved(largest_magnitude(operands.inputs[0])));
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    pass_straight_through(program, call, tape);
  }
};

class AmaxDefinition final : public DefinitionOf<amax_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }
  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 2.0 * elements_of(op.inputs[0]));
  }
  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t>,
                std::span<Expected> judged) const override {
    std::fill(judged.begin(), judged.end(), moved(largest_magnitude(operands.inputs[0])));
  }
};

class ScaleFromAmaxDefinition final : public DefinitionOf<scale_from_amax_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }
  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, elements_of(op.inputs[0]));
  }
  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t>,
                std::span<Expected> judged) const override {
    const auto& attributes = operands.call.attributes.as<ScaleFromAmax>();
    const double largest = largest_magnitude(operands.inputs[0]);
    double scale = 1.0;
    if (largest > 0.0 && std::isfinite(largest)) {
      const double room = std::ldexp(largest_finite(attributes.to), -attributes.margin);
      int power = std::ilogb(room) - std::ilogb(largest);
      if (std::ldexp(largest, power) > room) --power;
      scale = std::ldexp(1.0, std::clamp(power, -126, 127));
    }
    std::fill(judged.begin(), judged.end(), moved(scale));
  }
};

// A block of quantize_blocks: the stored scale, the factor of its elements, and the divisor that follows. Every step is
// exact or rounded as in quantize.h, in f32 where it specifies f32.
struct BlockScale {
  double stored = 0.0;
  double factor = 1.0, divisor = 1.0;
};

double f32_of(double value) { return round_to(DType::f32, value); }

/// Correct results that differ by the order of f32 operations; first the formula of quantize.h.
using Candidates = std::array<double, 3>;

/// The candidate that was written, else the first; `written` is NaN if none was. Zeros get the candidate's sign.
double chosen(const Candidates& candidates, double written) {
  const auto* const found = std::ranges::find(candidates, written);
  return found != candidates.end() ? *found : candidates.front();
}

BlockScale nvfp4_scale(double largest, double tensor_scale, double written) {
  constexpr double smallest = 0x1p-6;  // the smallest normal number of e4m3
  Candidates stored{f32_of(f32_of(largest * tensor_scale) / 6.0), f32_of(f32_of(largest / 6.0) * tensor_scale),
                    f32_of(largest * f32_of(tensor_scale / 6.0))};
  for (double& one : stored) one = round_to(DType::f8_e4m3, std::fmin(one, largest_finite(DType::f8_e4m3)));
  const bool raised = written == smallest && stored.front() < smallest;
  const double scale = raised ? smallest : chosen(stored, written);
  return {scale, tensor_scale, scale};
}

BlockScale mx_scale(double largest, DType to, bool covers) {
  int power = -127;
  if (largest > 0.0) {
    power = std::ilogb(largest) - std::ilogb(largest_finite(to));
    if (covers && std::ldexp(largest, -power) > largest_finite(to)) ++power;
    power = std::max(power, -127);
  }
  return {power + 127.0, std::ldexp(1.0, -power), 1.0};
}

class QuantizeBlocksDefinition final : public DefinitionOf<quantize_blocks_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {2.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const std::int64_t block = block_of(op.call.attributes.as<QuantizeBlocks>().format);
    CheckUnits units = element_units(op.outputs[1].shape, 4.0 * static_cast<double>(block));
    if (output == output_values) units.elements = block;
    return units;
  }

  std::string bound(const CallSpecs&, int output) const override {
    return std::string(exact_bound) + (output == output_values ? " for the stored scales" : "");
  }

  [[nodiscard]] bool reads_written(const OpCall&) const override { return true; }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const auto& attributes = operands.call.attributes.as<QuantizeBlocks>();
    const auto block = static_cast<std::size_t>(block_of(attributes.format));
    std::vector<double> x(block), written(block, std::nan(""));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * static_cast<std::int64_t>(block), x);
      const double stored = operands.written.empty() ? std::nan("") : operands.written[1][wanted[i]];
      const BlockScale scale = scale_of(operands, attributes, largest_magnitude(x), stored);
      if (output != output_values) {
        judged[i] = moved(scale.stored);
        continue;
      }
      if (!operands.written.empty()) operands.written[0].read(wanted[i] * static_cast<std::int64_t>(block), written);
      for (std::size_t e = 0; e < block; ++e)
        judged[i * block + e] = moved(value_of(x[e], scale, attributes.format, written[e]));
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    pass_straight_through(program, call, tape);
  }

 private:
  /// `written`: the scale that was written, else NaN.
  static BlockScale scale_of(const Operands& operands, const QuantizeBlocks& attributes, double largest,
                             double written) {
    const bool mx = attributes.format != BlockFormat::nvfp4;
    if (mx && std::isinf(largest) && written == 254.0) return {written, 0x1p-127, 1.0};  // E8M0: 254 is 2^127
    if (!std::isfinite(largest)) return {mx ? 255.0 : std::nan(""), std::nan(""), 1.0};
    if (!mx) return nvfp4_scale(largest, operands.inputs[1][0], written);
    return mx_scale(largest, element_of(attributes.format), attributes.covers);
  }

  static double value_of(double x, const BlockScale& scale, BlockFormat format, double written) {
    const DType to = element_of(format);
    const double t = f32_of(x * scale.factor);
    Candidates values;
    values.fill(x * scale.factor);
    if (format == BlockFormat::nvfp4) {
      values = {f32_of(t / scale.divisor), f32_of(x * f32_of(scale.factor / scale.divisor)),
                f32_of(t * f32_of(1.0 / scale.divisor))};
      if (scale.divisor == 0.0) values.fill(std::copysign(0.0, x));
    }
    for (double& value : values)
      value = round_to(to, std::isnan(value) ? value : std::clamp(value, -largest_finite(to), largest_finite(to)));
    return chosen(values, written);
  }
};

}  // namespace

Definitions quantize_definitions() {
  return definitions_of<AmaxDefinition, QuantizeDefinition, QuantizeBlocksDefinition, ScaleFromAmaxDefinition>();
}

}  // namespace gpubench

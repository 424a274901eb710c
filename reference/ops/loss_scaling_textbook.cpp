// 1 / scale is rounded once, then the product with it.
#include "reference/ops/optimizer.h"

#include <algorithm>
#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

bool any_not_finite(std::span<const TensorView> gradients) {
  bool found = false;
  for (const TensorView& gradient : gradients) {
    for_each_chunk(gradient, [&found](std::int64_t, std::span<const double> values) {
      found = found || !std::all_of(values.begin(), values.end(), [](double g) { return std::isfinite(g); });
    });
  }
  return found;
}

class UnscaleDefinition : public DefinitionOf<unscale_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs.subspan(1)), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, output == 0 ? cost(op).flop : 4.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    return output == 0 ? "exact, bitwise: whether a gradient is infinite or NaN"
                       : bound_text("2 u |g'| + " + flushed_text(op.call.math), op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) {
      std::fill(judged.begin(), judged.end(), moved(any_not_finite(operands.inputs.subspan(1)) ? 1.0 : 0.0));
      return;
    }
    const double u = accumulator_roundoff(operands.call.math);
    const double flushed = smallest_normal(operands.call.math.accumulate);
    const double scale = operands.inputs[0][0];
    judge_elements<1>({operands.inputs[static_cast<std::size_t>(output)]}, wanted, judged,
                      [&](std::int64_t, const auto& g) {
                        const double value = g[0] / scale;
                        return Expected{value, std::isfinite(value) ? 2.0 * u * std::fabs(value) + flushed : 0.0};
                      });
  }

  // An infinity or a NaN, which skips the step, at the end of the last gradient.
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    const std::size_t last = op.inputs.size() - 1;
    const std::int64_t end = op.inputs[last].shape.elements() - 1;
    std::vector<RevealingData> all;
    for (const auto& [name, value] :
         {std::pair("an infinite gradient", HUGE_VAL), std::pair("a gradient that is NaN", std::nan(""))})
      all.push_back({name, {{last, [end, value = value](std::int64_t e) { return e == end ? value : 1.0; }}}});
    return all;
  }
};

class UpdateScaleDefinition : public DefinitionOf<update_scale_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {2.0, op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, 4.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    return output == 0 ? "exact, rounded once to " + std::string(name(op.output(output).dtype)) : "exact, bitwise";
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t>,
                std::span<Expected> judged) const override {
    const auto& attributes = operands.call.attributes.as<UpdateScale>();
    const double scale = operands.inputs[0][0];
    const double steps = operands.inputs[1][0] + 1.0;
    const bool found = operands.inputs[2][0] != 0.0;
    const bool grows = !found && steps == static_cast<double>(attributes.interval);
    if (output == 1) {
      std::fill(judged.begin(), judged.end(), moved(found || grows ? 0.0 : steps));
      return;
    }
    double value = found ? attributes.backoff * scale : grows ? attributes.growth * scale : scale;
    if (grows && !std::isfinite(round_to(operands.outputs[0].dtype, value))) value = scale;
    std::fill(judged.begin(), judged.end(), moved(value));
  }
};

}  // namespace

Definitions loss_scaling_definitions() { return definitions_of<UnscaleDefinition, UpdateScaleDefinition>(); }

}  // namespace gpubench

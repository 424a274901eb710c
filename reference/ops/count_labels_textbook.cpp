#include "reference/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

class CountLabelsDefinition final : public DefinitionOf<count_labels_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.inputs[0]), op.bytes()}; }
  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 2.0 * elements_of(op.inputs[0]));
  }

  // Counts up to 1 / u are exact; parts may not be a power of two.
  std::string bound(const CallSpecs& op, int) const override { return bound_text("2 u |y|", op.call.math); }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t>,
                std::span<Expected> judged) const override {
    const auto& attributes = operands.call.attributes.as<CountLabels>();
    double count = 0.0;
    for_each_chunk(operands.inputs[0], [&](std::int64_t, std::span<const double> labels) {
      for (const double label : labels) count += label == attributes.ignore_index ? 0.0 : 1.0;
    });
    const double y = count / attributes.parts;
    std::fill(judged.begin(), judged.end(), Expected{y, 2.0 * accumulator_roundoff(operands.call.math) * std::fabs(y)});
  }
};

}  // namespace

Definitions count_labels_definitions() { return definitions_of<CountLabelsDefinition>(); }

}  // namespace gpubench

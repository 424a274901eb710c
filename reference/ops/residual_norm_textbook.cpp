// The sum of two numbers of one type, rounded to that type, is one number, whatever wider type it was added in: a wider
// type of 2 p + 2 bits or more makes the second rounding harmless (Figueroa 1995), and f32 has them for bf16 and f16.
// So the sum is judged bitwise, and the norm can be judged on the sum that must have been there.
#include "reference/ops/residual_norm_textbook.h"

#include <optional>
#include <vector>

#include "reference/ops/bytes_moved.h"
#include "reference/ops/elementwise.h"
#include "reference/ops/incoming_gradient.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/normalized_rows.h"
#include "reference/ops/residual_norm.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

NormalizedOutput normalized(int output) {
  return output == 1 ? NormalizedOutput::y : output == 2 ? NormalizedOutput::mean : NormalizedOutput::rstd;
}

class ResidualNormForwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return residual_norm_forward_kind; }

  // The work of the two ops; the bytes of both, but for one reading of the sum.
  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {9.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
              int output) const override {
    if (output == 0) return element_units(outputs[0].shape, 4.0);
    return output == 1 ? norm_row_units(inputs[0].shape, inputs[0].shape[-1], 22.0)
                       : norm_row_units(inputs[0].shape, 1, 8.0);
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
                    int output) const override {
    if (output == 0) return "exact, rounded once to " + std::string(name(outputs[0].dtype));
    return "of the rounded sum x: " + normalized_bound(normalized(output), inputs[0].shape[-1], call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    if (output == 0) {
      judge_elements<2>({operands.inputs[0], operands.inputs[1]}, wanted, judged, [](std::int64_t, const auto& in) {
        return Judged{in[0] + in[1], 0.0};
      });
      return;
    }
    const std::int64_t n = operands.inputs[0].shape()[-1];
    const double epsilon = operands.call.attributes.as<ResidualNorm>().epsilon;
    const double u = accumulator_roundoff(operands.call.math);
    const DType stored = operands.outputs[0].dtype;
    std::vector<double> sum(static_cast<std::size_t>(n));
    std::vector<double> r(sum.size()), gamma(sum.size()), beta(sum.size());
    operands.inputs[2].read(0, gamma);
    operands.inputs[3].read(0, beta);
    const std::size_t size = output == 1 ? sum.size() : 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * n, sum);
      operands.inputs[1].read(wanted[i] * n, r);
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] = round_to(stored, sum[j] + r[j]);
      judge_normalized(normalized(output), {sum, gamma, beta, epsilon, u}, judged.subspan(i * size, size));
    }
  }

  // What add and layer_norm_forward have: the norm's gradient joins the one that comes along the residual.
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    refuse_gradient_of_statistics(call, tape, call.outputs[2], call.outputs[3]);
    std::optional<ValueId> dsum = incoming_gradient(call, tape, call.outputs[0]);
    if (const auto dy = incoming_gradient(call, tape, call.outputs[1])) {
      const LayerNorm norm{call.attributes.as<ResidualNorm>().epsilon};
      const LayerNormBackward gradients =
          layer_norm_backward(program, norm, call.math, tape.label(call, "backward"), *dy, call.outputs[0],
                              call.inputs[2], call.outputs[2], call.outputs[3]);
      if (tape.wanted(call.inputs[2])) tape.contribute(call.inputs[2], gradients.dgamma);
      if (tape.wanted(call.inputs[3])) tape.contribute(call.inputs[3], gradients.dbeta);
      dsum = dsum ? add(program, call.math, tape.label(call, "gradient_sum"), *dsum, gradients.dx) : gradients.dx;
    }
    if (!dsum) return;
    if (tape.wanted(call.inputs[0])) tape.contribute(call.inputs[0], *dsum);
    if (tape.wanted(call.inputs[1])) tape.contribute(call.inputs[1], *dsum);
  }
};

}  // namespace

const OpDefinition& residual_norm_forward_definition() {
  static const ResidualNormForwardDefinition definition;
  return definition;
}

}  // namespace gpubench

// What normalization means, alone and behind a residual connection. Rows are judged whole. The bounds stay finite and
// honest for rows without variance, where an epsilon at the wrong place shows.
#include <cmath>
#include <optional>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/range_data.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

enum class NormalizedOutput { y, mean, rstd };

/// One row x, in fp64, and what it is normalized with; u is the unit roundoff of the arithmetic. Without beta it is
/// root mean square normalization: the mean is taken for 0.
struct NormalizedRow {
  std::span<const double> x, gamma, beta;
  double epsilon = 0.0;
  double u = 0.0;
  std::optional<DType> rounded{};  ///< what gamma multiplies is rounded to this type
  [[nodiscard]] bool centered() const { return !beta.empty(); }
};

// Exact statistics of one row, and how far arithmetic of unit roundoff u may be off: the mean by its sum of n terms,
// rstd by the relative error theta of the variance, by variance_error_bound(). Summed in long double, whose 64 bits
// (x86) leave an error far below the bound where what is judged was itself summed in f64: a row of equal numbers is all
// rounding errors, and epsilon magnifies them.
struct RowStatistics {
  double mean = 0.0, mean_bound = 0.0;
  double rstd = 0.0, theta = 0.0;

  explicit RowStatistics(const NormalizedRow& row) {
    const std::span<const double> x = row.x;
    const double u = row.u;
    const double n = static_cast<double>(x.size());
    long double sum = 0.0L;
    double size = 0.0;
    for (const double value : x) {
      sum += value;
      size += std::fabs(value);
    }
    const long double exact_mean = row.centered() ? sum / static_cast<long double>(n) : 0.0L;
    mean = static_cast<double>(exact_mean);
    long double squares = 0.0L;
    for (const double value : x) squares += (value - exact_mean) * (value - exact_mean);
    const double variance = static_cast<double>(squares / static_cast<long double>(n));
    mean_bound = row.centered() ? 2.0 * std::sqrt(n) * u * size / n + 2.0 * u * std::fabs(mean) : 0.0;
    rstd = 1.0 / std::sqrt(variance + row.epsilon);
    const double variance_bound = variance_error_bound(n, mean, mean_bound, variance, u);
    // An infinite variance is that in any arithmetic, and rstd 0.
    theta = (std::isinf(variance) ? 0.0 : 0.5 * variance_bound * rstd * rstd) + 3.0 * u;
  }
};

void judge_y(const RowStatistics& statistics, const NormalizedRow& row, std::span<Expected> judged) {
  const double u = row.u;
  for (std::size_t j = 0; j < row.x.size(); ++j) {
    const double deviation = row.x[j] - statistics.mean;
    const double beta = row.centered() ? row.beta[j] : 0.0;
    Expected normalized{
        deviation * statistics.rstd,
        statistics.rstd * (statistics.mean_bound + std::fabs(deviation) * (statistics.theta + 4.0 * u))};
    if (row.rounded) normalized = rounded_to(*row.rounded, normalized);
    const double y = row.gamma[j] * normalized.value + beta;
    judged[j] = {y, std::fabs(row.gamma[j]) * normalized.bound + 2.0 * u * (std::fabs(y) + std::fabs(beta))};
  }
}

/// Judges an output of a row: as many elements as x has for y, one for a statistic.
void judge_normalized(NormalizedOutput output, const NormalizedRow& row, std::span<Expected> judged) {
  const RowStatistics statistics(row);
  switch (output) {
    case NormalizedOutput::y: judge_y(statistics, row, judged); break;
    case NormalizedOutput::mean: judged[0] = {statistics.mean, statistics.mean_bound}; break;
    case NormalizedOutput::rstd: judged[0] = {statistics.rstd, statistics.rstd * (statistics.theta + row.u)}; break;
  }
}

/// The rule that judge_normalized() computes, for rows of n elements.
std::string normalized_bound(NormalizedOutput output, std::int64_t n, const Math& math, bool centered = true,
                             bool rounds = false) {
  const std::string count = std::to_string(n);
  if (!centered) {
    const std::string theta = ", r = 3 u + 2 u sqrt(" + count + ") mean(x^2) rstd^2 / 2";
    const std::string y = rounds ? "|gamma| times how far round(xhat (1 +- (r + 4 u))) are apart / 2 + 2 u |y|"
                                 : "|gamma x| rstd (r + 4 u) + 2 u |y|";
    return bound_text((output == NormalizedOutput::rstd ? "rstd (r + u)" : y) + theta, math);
  }
  const std::string mean = "2 u sqrt(" + count + ") mean|x| + 2 u |mean|";
  if (output == NormalizedOutput::mean) return bound_text(mean, math);
  const std::string var = "2 u sqrt(" + count + ") var + 4 u |mean| sqrt(var) + T^2";
  const std::string theta = ", r = 3 u + (" + var + ") rstd^2 / 2, T = " + mean;
  if (output == NormalizedOutput::rstd) return bound_text("rstd (r + u)" + theta, math);
  return bound_text("|gamma| rstd (T + |x - mean| (r + 4 u)) + 2 u (|y| + |beta|)" + theta, math);
}

// Layer normalization where `centered`, else root mean square normalization.
template <bool centered>
class NormForwardDefinition : public DefinitionOf<(centered ? layer_norm_forward_kind : rms_norm_forward_kind)> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {(centered ? 8.0 : 5.0) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return output == 0 ? norm_row_units(op.inputs[0].shape, op.inputs[0].shape[-1], 20.0)
                       : norm_row_units(op.inputs[0].shape, 1, 6.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    return normalized_bound(meaning(output), op.inputs[0].shape[-1], op.call.math, centered,
                            row_norm_of(op.call).rounds_before_gamma);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& data = operands.input("x");
    const std::int64_t n = data.shape()[-1];
    const RmsNorm attributes = row_norm_of(operands.call);
    const double u = accumulator_roundoff(operands.call.math);
    std::optional<DType> rounded;
    if (attributes.rounds_before_gamma) rounded = data.dtype();
    std::vector<double> x(static_cast<std::size_t>(n));
    std::vector<double> gamma(x.size());
    std::vector<double> beta(centered ? x.size() : 0);
    operands.input("gamma").read(0, gamma);
    if (centered) operands.input("beta").read(0, beta);
    const std::size_t size = output == 0 ? x.size() : 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      data.read(wanted[i] * n, x);
      judge_normalized(meaning(output), {x, gamma, beta, attributes.norm.epsilon, u, rounded},
                       judged.subspan(i * size, size));
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return lines_to_normalize(op.inputs[0], StatisticsOf::rows, centered);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    refuse_gradient_of_statistics(call, tape);
    const auto dy = incoming_gradient(call, tape, call.output("y"));
    if (!dy) return;
    const auto contribute = [&](const char* input, ValueId gradient) {
      if (tape.wanted(call.input(input))) tape.contribute(call.input(input), gradient);
    };
    const ValueId x = call.input("x"), gamma = call.input("gamma"), rstd = call.output("rstd");
    const RmsNorm norm = row_norm_of(call);
    if constexpr (centered) {
      const auto of = layer_norm_backward(program, norm.norm, call.math, tape.label(call, "backward"), *dy, x, gamma,
                                          call.output("mean"), rstd);
      contribute("x", of.dx);
      contribute("gamma", of.dgamma);
      contribute("beta", of.dbeta);
    } else {
      const auto of = rms_norm_backward(program, norm, call.math, tape.label(call, "backward"), *dy, x, gamma, rstd);
      contribute("x", of.dx);
      contribute("gamma", of.dgamma);
    }
  }

 private:
  static NormalizedOutput meaning(int output) {
    if (output == 0) return NormalizedOutput::y;
    return centered && output == 1 ? NormalizedOutput::mean : NormalizedOutput::rstd;
  }
};

// The sum of two numbers of one type, rounded to that type, is one number, whatever wider type it was added in: a wider
// type of 2 p + 2 bits or more makes the second rounding harmless (Figueroa 1995), and f32 has them for bf16 and f16.
// So the sum is judged bitwise, and the norm can be judged on the sum that must have been there.
NormalizedOutput normalized(int output) {
  return output == 1 ? NormalizedOutput::y : output == 2 ? NormalizedOutput::mean : NormalizedOutput::rstd;
}

class ResidualNormForwardDefinition : public DefinitionOf<residual_norm_forward_kind> {
 public:
  // The work of the two ops; the bytes of both, but for one reading of the sum.
  Cost cost(const CallSpecs& op) const override { return {9.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    if (output == 0) return element_units(op.outputs[0].shape, 4.0);
    return output == 1 ? norm_row_units(op.inputs[0].shape, op.inputs[0].shape[-1], 22.0)
                       : norm_row_units(op.inputs[0].shape, 1, 8.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == 0) return "exact, rounded once to " + std::string(name(op.outputs[0].dtype));
    return "of the rounded sum x: " + normalized_bound(normalized(output), op.inputs[0].shape[-1], op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) {
      judge_elements<2>({operands.inputs[0], operands.inputs[1]}, wanted, judged, [](std::int64_t, const auto& in) {
        return Expected{in[0] + in[1], 0.0};
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

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return lines_to_normalize(op.inputs[0], StatisticsOf::rows);
  }

  // What add and layer_norm_forward have: the norm's gradient joins the one that comes along the residual.
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    refuse_gradient_of_statistics(call, tape);
    const auto contribute = [&](const char* input, ValueId gradient) {
      if (tape.wanted(call.input(input))) tape.contribute(call.input(input), gradient);
    };
    std::optional<ValueId> dsum = incoming_gradient(call, tape, call.output("sum"));
    if (const auto dy = incoming_gradient(call, tape, call.output("y"))) {
      const LayerNorm norm{call.attributes.as<ResidualNorm>().epsilon};
      const LayerNormBackward gradients =
          layer_norm_backward(program, norm, call.math, tape.label(call, "backward"), *dy, call.output("sum"),
                              call.input("gamma"), call.output("mean"), call.output("rstd"));
      contribute("gamma", gradients.dgamma);
      contribute("beta", gradients.dbeta);
      dsum = dsum ? add(program, call.math, tape.label(call, "gradient_sum"), *dsum, gradients.dx) : gradients.dx;
    }
    if (!dsum) return;
    contribute("x", *dsum);
    contribute("r", *dsum);
  }
};

}  // namespace

Definitions norm_definitions() {
  return definitions_of<NormForwardDefinition<true>, ResidualNormForwardDefinition, NormForwardDefinition<false>>();
}

}  // namespace gpubench

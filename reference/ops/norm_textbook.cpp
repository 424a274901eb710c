// Rows are judged whole. Bounds stay finite for rows without variance, which reveal a misplaced epsilon.
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

/// A row x in fp64 and its parameters; u is the unit roundoff of the arithmetic. Without beta: root mean square
/// normalization, with mean 0.
struct NormalizedRow {
  std::span<const double> x, gamma, beta;
  double epsilon = 0.0;
  double u = 0.0;
  std::optional<DType> rounded{};  ///< gamma's factor is rounded to this type
  [[nodiscard]] bool centered() const { return !beta.empty(); }
};

// A row's exact statistics and their error bounds: of the mean by Rule G; of rstd relative to it, theta, by
// variance_error_bound(). Summed in long double, whose 64 bits (x86) are needed to judge results in f64: the variance
// of a row of equal numbers is only rounding errors, which a small epsilon magnifies.
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
    // An infinite variance is infinite in any arithmetic, and rstd 0.
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

/// `judged`: one element per element of x for y, one for a statistic.
void judge_normalized(NormalizedOutput output, const NormalizedRow& row, std::span<Expected> judged) {
  const RowStatistics statistics(row);
  switch (output) {
    case NormalizedOutput::y: judge_y(statistics, row, judged); break;
    case NormalizedOutput::mean: judged[0] = {statistics.mean, statistics.mean_bound}; break;
    case NormalizedOutput::rstd: judged[0] = {statistics.rstd, statistics.rstd * (statistics.theta + row.u)}; break;
  }
}

std::string normalized_bound(NormalizedOutput output, std::int64_t n, const Math& math, bool centered = true,
                             bool rounds = false) {
  const std::string count = std::to_string(n);
  if (!centered) {
    const std::string theta = ", r = 3 u + 2 u sqrt(" + count + ") mean(x^2) rstd^2 / 2";
    const std::string y = rounds ? "|gamma| times half the distance of round(xhat (1 +- (r + 4 u))) + 2 u |y|"
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

// A sum of two numbers of one type, rounded to that type, is the same whatever wider type it is added in, if that has
// at least 2 p + 2 bits, as f32 has for bf16 and f16 (Figueroa 1995). So the residual's sum is judged bitwise, and the
// norm by the exact rounded sum.
template <const OpKind& norm_kind>
class NormForwardDefinition : public DefinitionOf<norm_kind> {
 public:
  // With a residual: FLOP of both ops, and their bytes without a second reading of the sum.
  Cost cost(const CallSpecs& op) const override {
    return {(residual ? 9.0 : centered ? 8.0 : 5.0) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const Shape& x = op.inputs[0].shape;
    if (is_sum(output)) return element_units(x, 4.0);
    return meaning(output) == NormalizedOutput::y ? norm_row_units(x, x[-1], residual ? 22.0 : 20.0)
                                                  : norm_row_units(x, 1, residual ? 8.0 : 6.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (is_sum(output)) return "exact, rounded once to " + std::string(name(op.outputs[0].dtype));
    return (residual ? "of the rounded sum x: " : "") + normalized_bound(meaning(output), op.inputs[0].shape[-1],
                                                                         op.call.math, centered,
                                                                         row_norm_of(op.call).rounds_before_gamma);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (is_sum(output)) {
      judge_elements<2>({operands.inputs[0], operands.inputs[1]}, wanted, judged, [](std::int64_t, const auto& in) {
        return Expected{in[0] + in[1], 0.0};
      });
      return;
    }
    const TensorView& data = operands.input("x");
    const std::int64_t n = data.shape()[-1];
    const RmsNorm attributes = row_norm_of(operands.call);
    const double u = accumulator_roundoff(operands.call.math);
    std::optional<DType> rounded;
    if (attributes.rounds_before_gamma) rounded = data.dtype();
    std::vector<double> x(static_cast<std::size_t>(n));
    std::vector<double> r(residual ? x.size() : 0), gamma(x.size()), beta(centered ? x.size() : 0);
    operands.input("gamma").read(0, gamma);
    if (centered) operands.input("beta").read(0, beta);
    const std::size_t size = meaning(output) == NormalizedOutput::y ? x.size() : 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      data.read(wanted[i] * n, x);
      if (residual) operands.inputs[1].read(wanted[i] * n, r);
      for (std::size_t j = 0; j < r.size(); ++j) x[j] = round_to(operands.outputs[0].dtype, x[j] + r[j]);
      judge_normalized(meaning(output), {x, gamma, beta, attributes.norm.epsilon, u, rounded},
                       judged.subspan(i * size, size));
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return lines_to_normalize(op.inputs[0], StatisticsOf::rows, centered);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    refuse_gradient_of_statistics(call, tape);
    const auto contribute = [&](const char* input, ValueId gradient) {
      if (tape.wanted(call.input(input))) tape.contribute(call.input(input), gradient);
    };
    std::optional<ValueId> dsum;
    if (residual) dsum = incoming_gradient(call, tape, call.output("sum"));
    if (const auto dy = incoming_gradient(call, tape, call.output("y"))) {
      const ValueId x = residual ? call.output("sum") : call.input("x");
      const ValueId gamma = call.input("gamma"), rstd = call.output("rstd");
      const RmsNorm norm = row_norm_of(call);
      const auto of = [&, label = tape.label(call, "backward")] {
        if constexpr (centered)
          return layer_norm_backward(program, norm.norm, call.math, label, *dy, x, gamma, call.output("mean"), rstd);
        else
          return rms_norm_backward(program, norm, call.math, label, *dy, x, gamma, rstd);
      }();
      if (!residual) contribute("x", of.dx);
      contribute("gamma", of.dgamma);
      if constexpr (centered) contribute("beta", of.dbeta);
      if (residual) dsum = dsum ? add(program, call.math, tape.label(call, "gradient_sum"), *dsum, of.dx) : of.dx;
    }
    if (!dsum) return;
    contribute("x", *dsum);
    contribute("r", *dsum);
  }

 private:
  static constexpr bool centered = norm_kind.name != rms_norm_forward_kind.name;
  static constexpr bool residual = norm_kind.name == residual_norm_forward_kind.name;

  static bool is_sum(int output) { return residual && output == 0; }
  static NormalizedOutput meaning(int output) {
    if (output == (residual ? 1 : 0)) return NormalizedOutput::y;
    return centered && output == (residual ? 2 : 1) ? NormalizedOutput::mean : NormalizedOutput::rstd;
  }
};

}  // namespace

Definitions norm_definitions() {
  return definitions_of<NormForwardDefinition<layer_norm_forward_kind>,
                        NormForwardDefinition<residual_norm_forward_kind>,
                        NormForwardDefinition<rms_norm_forward_kind>>();
}

}  // namespace gpubench

// Elements are judged one by one; a channel's sums are computed once for all its wanted elements.
#include "reference/ops/shared_textbook.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "reference/ops/batch_norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/range_data.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

std::int64_t rows_of(const Shape& x) { return x.elements() / x[-1]; }

/// The distinct channels of wanted elements, ascending; place[i] is the index of wanted[i]'s.
struct Channels {
  std::vector<std::int64_t> all;
  std::vector<std::size_t> place;

  Channels(std::span<const std::int64_t> wanted, std::int64_t count) {
    for (const std::int64_t element : wanted) all.push_back(element % count);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const std::int64_t element : wanted) {
      place.push_back(static_cast<std::size_t>(std::ranges::lower_bound(all, element % count) - all.begin()));
    }
  }
  [[nodiscard]] std::vector<double> of(const TensorView& view) const {
    std::vector<double> values(all.size());
    gather(view, all, 0, values);
    return values;
  }
};

/// Calls visit(channel, value of each view) row by row.
template <std::size_t views, class Visit>
void for_each_row(const std::array<TensorView, views>& data, const Channels& channels, const Visit& visit) {
  const std::int64_t width = data[0].shape()[-1];
  std::array<std::vector<double>, views> values;
  for (auto& of_view : values) of_view.resize(channels.all.size());
  for (std::int64_t row = 0; row < rows_of(data[0].shape()); ++row) {
    for (std::size_t v = 0; v < views; ++v) gather(data[v], channels.all, row * width, values[v]);
    for (std::size_t j = 0; j < channels.all.size(); ++j) {
      std::array<double, views> element;
      for (std::size_t v = 0; v < views; ++v) element[v] = values[v][j];
      visit(j, element);
    }
  }
}

// A channel's exact statistics and their error bounds: of the mean by Rule G, of the variance by
// variance_error_bound(). In long double as in norm_textbook.cpp.
struct ChannelStatistics {
  ProductSum sum;
  long double exact_sum = 0.0L, squares = 0.0L;
  long double exact_mean = 0.0L;
  double mean = 0.0, mean_bound = 0.0;
  double shift = 0.0;  ///< mean_bound, increased for an rstd that is off as well
  double variance = 0.0, variance_bound = 0.0;
  double rstd = 0.0, theta = 0.0;  ///< theta: relative error of rstd

  void add(double x) {
    sum.add(x);
    exact_sum += x;
  }
  void take_mean(double u) {
    exact_mean = exact_sum / static_cast<long double>(sum.terms);
    mean = static_cast<double>(exact_mean);
    mean_bound = sum_error_bound(sum, u) / sum.terms + 2.0 * u * std::fabs(mean);
    shift = mean_bound;
  }
  void add_square(double x) { squares += (x - exact_mean) * (x - exact_mean); }
  void take_variance(double epsilon, double u) {
    const double n = sum.terms;
    variance = static_cast<double>(squares / static_cast<long double>(n));
    variance_bound = variance_error_bound(n, mean, mean_bound, variance, u);
    rstd = 1.0 / std::sqrt(variance + epsilon);
    theta = 0.5 * variance_bound * rstd * rstd + 3.0 * u;
  }
};

/// The type that x was rounded to, before or after the sums (SumsBeside); empty if statistics are taken of x.
using SummedBeside = std::optional<DType>;

// Error of statistics made of two sums, of x and x^2, taken where x was computed: of elements x + d, each before or
// after rounding, |d| <= e = u_x |x|.
// - The d are independent and about uniform, so a sum of them is at most six standard deviations of e / sqrt(3). If a
//   channel's deviation is below the spacing 2 e, elements round to few numbers, and the bound is the sum of e. The
//   mean moves by the mean d, the variance by 2 / n sum (x - mean) d + mean d^2 - (mean d)^2, whose last two terms are
//   between 0 and mean e^2.
// - var = q / n - mean^2 cancels, so it has the whole Rule G error T_q of q = sum x^2. With M_a the error of the mean's
//   arithmetic and R that of its d: T_q / n + 2 (|mean| + R) M_a + M_a^2 + 3 u (var + mean^2), where the last term
//   covers a division, a product and a difference.
// If the error V is close to var, rstd is bounded by the values at var + V and max(var - V, 0), not by a multiple of V.
struct SumsBeside {
  double u = 0.0, least = 0.0;
  ProductSum squares{};
  double moved = 0.0, moved_squares = 0.0, spread = 0.0, spread_squares = 0.0;

  SumsBeside(DType stored, double sums_u)
      : u(unit_roundoff(stored) > sums_u ? unit_roundoff(stored) : 0.0), least(smallest_normal(stored)) {}

  void add(double x, double mean) {
    squares.add(x * x);
    const double e = u * std::max(std::fabs(x), least), of_variance = std::fabs(x - mean) * e;
    moved += e;
    moved_squares += e * e;
    spread += of_variance;
    spread_squares += of_variance * of_variance;
  }
  void widen(ChannelStatistics& of, double epsilon, double sums_u) const {
    const double n = of.sum.terms, arithmetic = of.mean_bound;
    const bool random = n * of.variance > 4.0 * moved_squares;
    const auto six_sigma = [random](double most, double of_squares) {
      return random ? std::min(most, 6.0 * std::sqrt(of_squares / 3.0)) : most;
    };
    of.mean_bound += six_sigma(moved, moved_squares) / n;
    of.variance_bound = sum_error_bound(squares, sums_u) / n + 2.0 * std::fabs(of.mean) * arithmetic +
                        of.mean_bound * of.mean_bound + 3.0 * sums_u * (of.variance + of.mean * of.mean) +
                        (2.0 * six_sigma(spread, spread_squares) + moved_squares) / n;
    const double most = 1.0 / std::sqrt(std::max(of.variance - of.variance_bound, 0.0) + epsilon) / of.rstd;
    const double min_rstd = 1.0 / std::sqrt(of.variance + of.variance_bound + epsilon) / of.rstd;
    of.theta = std::max(most - 1.0, 1.0 - min_rstd) + 3.0 * sums_u * most;
    of.shift = of.mean_bound * (1.0 + of.theta);
  }
};

std::vector<ChannelStatistics> statistics_of(const TensorView& x, const Channels& channels, double epsilon, double u,
                                             SummedBeside stored) {
  std::vector<ChannelStatistics> all(channels.all.size());
  std::vector<SumsBeside> beside;
  if (stored) beside.assign(all.size(), SumsBeside(*stored, u));
  for_each_row<1>({x}, channels, [&](std::size_t j, const auto& value) { all[j].add(value[0]); });
  for (ChannelStatistics& one : all) one.take_mean(u);
  for_each_row<1>({x}, channels, [&](std::size_t j, const auto& value) {
    all[j].add_square(value[0]);
    if (stored) beside[j].add(value[0], all[j].mean);
  });
  for (ChannelStatistics& one : all) one.take_variance(epsilon, u);
  for (std::size_t j = 0; j < beside.size(); ++j) beside[j].widen(all[j], epsilon, u);
  return all;
}

// One element costs as much as its whole channel.
CheckUnits units_of(const CallSpecs& op, int output, double flop_per_row) {
  return element_units(op.output(output).shape, flop_per_row * static_cast<double>(rows_of(op.input("x").shape)));
}

template <bool fused>
class BatchNormForwardDefinition
    : public DefinitionOf<(fused ? batch_norm_relu_forward_kind : batch_norm_forward_kind)> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const double per_element = 8.0 + (fused ? 1.0 : 0.0) + (has_residual(op.call) ? 1.0 : 0.0);
    return {per_element * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return units_of(op, output, 2.0 * strided_read_flop + 14.0);
  }

  std::string bound(const CallSpecs& op, int output) const override { return rule(op, {}, output); }

  static std::string rule(const CallSpecs& op, SummedBeside stored, int output) {
    const std::string n = std::to_string(rows_of(op.inputs[0].shape));
    const bool moved = stored && unit_roundoff(*stored) > accumulator_roundoff(op.call.math);
    const std::string mean = moved ? "T + R + 2 u |mean|" : "T + 2 u |mean|";
    std::string t = ", T = " + sum_error_text(rows_of(op.inputs[0].shape)) + " / " + n;
    if (moved)
      t += ", R = min(sum e, 6 sigma) / " + n + " (sum e / " + n +
           " where var < 4 mean e^2), e = " + power_text(unit_roundoff(*stored)) + " |x|";
    if (output == mean_output) return bound_text(mean + t, op.call.math);
    const std::string two_pass = "2 u sqrt(" + n + ") var + 4 u |mean| sqrt(var) + M^2";
    const std::string of_sums = "T of x^2 + 2 |mean| (T + 2 u |mean|) + M^2 + 3 u (var + mean^2)";
    const std::string rounded = " + 2 min(sum |x - mean| e, 6 sigma) / " + n + " + mean e^2";
    const std::string var = ", V = " + (stored ? of_sums + (moved ? rounded : "") : two_pass) + ", M = " + mean + t;
    const std::string r =
        (stored ? ", r = 3 u + |rstd of var -+ V, or of 0, / rstd - 1|" : ", r = 3 u + V rstd^2 / 2") + var;
    if (output == y_output) {
      const std::string normalized = "|gamma| rstd (M + |x - mean| (r + 4 u)) + 2 u (|y| + |beta|)" + r;
      if (!fused) return bound_text(normalized, op.call.math);
      return bound_text((has_residual(op.call) ? "y + r, T_y + u (|y + r| + T_y), T_y = " : "") + normalized +
                            "; ReLU increases no difference",
                        op.call.math);
    }
    if (output == rstd_output) return bound_text("rstd (r + u)" + r, op.call.math);
    const std::string kept = " + 4 u ((1 - momentum) |running| + momentum |statistic|)";
    if (output == running_mean_output) return bound_text("momentum M" + kept + ", M = " + mean + t, op.call.math);
    return bound_text("momentum n / (n - 1) V" + kept + var, op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    judge(operands, {}, output, wanted, judged);
  }

  static void judge(const Operands& operands, SummedBeside stored, int output, std::span<const std::int64_t> wanted,
                    std::span<Expected> judged) {
    const BatchNorm& norm = norm_of(operands.call);
    const double u = accumulator_roundoff(operands.call.math);
    const TensorView& x = operands.input("x");
    const Channels channels(wanted, x.shape()[-1]);
    const std::vector<ChannelStatistics> statistics = statistics_of(x, channels, norm.epsilon, u, stored);
    if (output == y_output) {
      judge_y(operands, channels, statistics, wanted, judged);
      if (fused) judge_relu(operands, wanted, judged);
      return;
    }
    const std::vector<double> running =
        channels.of(operands.input(output == running_var_output ? "running_var" : "running_mean"));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const ChannelStatistics& of = statistics[channels.place[i]];
      const double unbiased = of.sum.terms / (of.sum.terms - 1.0);
      const double old = running[channels.place[i]];
      switch (output) {
        case mean_output: judged[i] = {of.mean, of.mean_bound}; break;
        case rstd_output: judged[i] = {of.rstd, of.rstd * (of.theta + u)}; break;
        case running_mean_output: judged[i] = moving(norm.momentum, old, of.mean, of.mean_bound, u); break;
        default: judged[i] = moving(norm.momentum, old, of.variance * unbiased, of.variance_bound * unbiased, u); break;
      }
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return lines_to_normalize(op.inputs[0], StatisticsOf::channels);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    refuse_gradient_of_statistics(call, tape);
    auto dy = incoming_gradient(call, tape, call.output("y"));
    if (!dy) return;
    if (fused) dy = relu_backward(program, call.math, tape.label(call, "relu_backward"), call.output("y"), *dy);
    const auto of = batch_norm_backward(program, call.math, tape.label(call, "backward"), *dy, call.input("x"),
                                        call.input("gamma"), call.output("mean"), call.output("rstd"));
    const auto contribute = [&](const char* input, ValueId gradient) {
      if (tape.wanted(call.input(input))) tape.contribute(call.input(input), gradient);
    };
    if (has_residual(call)) contribute("r", *dy);
    contribute("x", of.dx);
    contribute("gamma", of.dgamma);
    contribute("beta", of.dbeta);
  }

 private:
  enum { y_output, mean_output, rstd_output, running_mean_output, running_var_output };

  static const BatchNorm& norm_of(const OpCall& call) {
    if constexpr (fused) {
      return call.attributes.as<BatchNormRelu>().norm;
    } else {
      return call.attributes.as<BatchNorm>();
    }
  }
  static bool has_residual(const OpCall& call) {
    if constexpr (fused) return call.attributes.as<BatchNormRelu>().r;
    return false;
  }

  /// Adds the residual, with one rounding, and applies the ReLU, which does not increase differences.
  static void judge_relu(const Operands& operands, std::span<const std::int64_t> wanted, std::span<Expected> judged) {
    if (has_residual(operands.call)) {
      const double u = accumulator_roundoff(operands.call.math);
      std::vector<double> r(wanted.size());
      gather(operands.input("r"), wanted, 0, r);
      for (std::size_t i = 0; i < judged.size(); ++i) {
        judged[i].value += r[i];
        judged[i].bound += u * (std::fabs(judged[i].value) + judged[i].bound);
      }
    }
    for (Expected& y : judged) y.value = y.value < 0.0 ? 0.0 : y.value;
  }

  static void judge_y(const Operands& operands, const Channels& channels,
                      const std::vector<ChannelStatistics>& statistics, std::span<const std::int64_t> wanted,
                      std::span<Expected> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::vector<double> gamma = channels.of(operands.input("gamma")), beta = channels.of(operands.input("beta"));
    judge_elements<1>(
        {operands.input("x")}, wanted, judged, [&, i = std::size_t{0}](std::int64_t, const auto& x) mutable {
          const std::size_t j = channels.place[i++];
          const ChannelStatistics& of = statistics[j];
          const double deviation = x[0] - of.mean;
          const double y = gamma[j] * deviation * of.rstd + beta[j];
          const double normalized = of.rstd * (of.shift + std::fabs(deviation) * (of.theta + 4.0 * u));
          return Expected{y, std::fabs(gamma[j]) * normalized + 2.0 * u * (std::fabs(y) + std::fabs(beta[j]))};
        });
  }

  static Expected moving(double momentum, double old, double statistic, double bound, double u) {
    const double kept = (1.0 - momentum) * old, added = momentum * statistic;
    return {kept + added, momentum * bound + 4.0 * u * (std::fabs(kept) + std::fabs(added))};
  }
};

// A channel's sums of dy and of dy xhat, whose terms have three roundings each; saved statistics count as exact.
struct GradientSums {
  StoredSum plain, weighted;

  [[nodiscard]] Expected dgamma(double u) const {
    const ProductSum& sum = weighted.sum();
    return {sum.value, u * (2.0 * std::sqrt(sum.terms) + 3.0) * partial_sum_size(sum) + weighted.moved()};
  }
  [[nodiscard]] Expected dbeta(double u) const {
    return {plain.sum().value, sum_error_bound(plain.sum(), u) + plain.moved()};
  }
};

/// `fused`: batch_norm_relu_backward. With a second gradient, dr is a rounded sum. Other outputs are judged by dr as
/// stored, possibly summed over rows before rounding.
template <bool fused>
class BatchNormBackwardDefinition
    : public DefinitionOf<(fused ? batch_norm_relu_backward_kind : batch_norm_backward_kind)> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const double per_element = 11.0 + (fused ? 1.0 : 0.0) + (op.call.attributes.has("dy2") ? 1.0 : 0.0);
    return {per_element * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    if (output == dr_output) return element_units(op.output(output).shape, 8.0);
    return units_of(op, output, (fused ? 3.0 : 2.0) * strided_read_flop + 16.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    if (output == dr_output)
      return op.call.attributes.has("dy2") ? bound_text("u |dr|", op.call.math) : exact_selection;
    const std::int64_t n = rows_of(op.input("x").shape);
    const bool moves =
        op.call.attributes.has("dy2") && unit_roundoff(op.input("dy").dtype) > accumulator_roundoff(op.call.math);
    const auto of_stored = [&](std::string_view term) {
      return moves ? " + min(sum e, 6 sigma), e = " + power_text(unit_roundoff(op.input("dy").dtype)) +
                         std::string(term) + ", of dr as stored"
                   : std::string();
    };
    if (output == dbeta_output) {
      return bound_text("Rule G: " + sum_error_text(n) + of_stored(" |dr|"), op.call.math);
    }
    const std::string sum = "u (2 sqrt(" + std::to_string(n) + ") + 3) " + std::string(partial_sum_text);
    if (output == dgamma_output) {
      return bound_text("Rule G, three roundings per term: " + sum + of_stored(" |dr xhat|"), op.call.math);
    }
    const std::string means = "(T_b + |xhat| T_g + 5 u (|dbeta| + |xhat dgamma|)) / " + std::to_string(n);
    return bound_text("|gamma rstd| (3 u |" + std::string(fused ? "dr" : "dy") + "| + " + means +
                          ") + 3 u |dx|, T_b = " + sum_error_text(n) + of_stored(" |dr|") + ", T_g = " + sum +
                          of_stored(" |dr xhat|"),
                      op.call.math);
  }

  bool reads_written(const OpCall& call) const override { return call.attributes.has("dy2"); }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return normalized_lines(op, StatisticsOf::channels);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView &dy = operands.input("dy"), &x = operands.input("x");
    if constexpr (!fused) {
      judge<2>({dy, x}, operands, output, wanted, judged);
    } else if (!operands.call.attributes.has("dy2")) {
      judge<3>({dy, x, operands.input("y")}, operands, output, wanted, judged);
    } else if (output != dr_output && !operands.written.empty()) {
      judge<2>({operands.written[dr_output], x}, operands, output, wanted, judged);
    } else {
      judge<4>({dy, x, operands.input("y"), operands.input("dy2")}, operands, output, wanted, judged);
    }
  }

 private:
  enum { dx_output, dgamma_output, dbeta_output, dr_output };
  static constexpr const char* exact_selection = "exact, a zero of either sign";

  /// dr from dy, x and, if present, y and dy2.
  template <std::size_t views>
  static double gradient(const std::array<double, views>& of) {
    double dr = of[0];
    if constexpr (views > 3) dr += of[3];
    if constexpr (views > 2) return of[2] <= 0.0 ? 0.0 : dr;
    return dr;
  }

  template <std::size_t views>
  static void judge(const std::array<TensorView, views>& data, const Operands& operands, int output,
                    std::span<const std::int64_t> wanted, std::span<Expected> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const bool sums = operands.call.attributes.has("dy2");
    if (output == dr_output) {
      judge_elements<views>(data, wanted, judged, [&](std::int64_t, const auto& of) {
        const double dr = gradient(of);
        return Expected{dr, sums ? u * std::fabs(dr) : 0.0};
      });
      return;
    }
    const Channels channels(wanted, data[1].shape()[-1]);
    const auto gamma = channels.of(operands.input("gamma")), mean = channels.of(operands.input("mean")),
               rstd = channels.of(operands.input("rstd"));
    const StoredSum none = sums ? StoredSum(data[0].spec().dtype, operands.call.math.accumulate) : StoredSum();
    std::vector<GradientSums> all(channels.all.size(), GradientSums{none, none});
    for_each_row<views>(data, channels, [&](std::size_t j, const auto& of) {
      const double dr = gradient(of);
      all[j].plain.add(dr);
      all[j].weighted.add(dr, (of[1] - mean[j]) * rstd[j]);
    });
    if (output != dx_output) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const GradientSums& of = all[channels.place[i]];
        judged[i] = output == dgamma_output ? of.dgamma(u) : of.dbeta(u);
      }
      return;
    }
    const auto n = static_cast<double>(rows_of(data[1].shape()));
    judge_elements<views>(data, wanted, judged, [&, i = std::size_t{0}](std::int64_t, const auto& of) mutable {
      const std::size_t j = channels.place[i++];
      const double dr = gradient(of), xhat = (of[1] - mean[j]) * rstd[j], factor = gamma[j] * rstd[j];
      const Expected dgamma = all[j].dgamma(u), dbeta = all[j].dbeta(u);
      const double dx = factor * (dr - (dbeta.value + xhat * dgamma.value) / n);
      const double means = dbeta.bound + std::fabs(xhat) * dgamma.bound +
                           5.0 * u * (std::fabs(dbeta.value) + std::fabs(xhat * dgamma.value));
      return Expected{dx, std::fabs(factor) * (3.0 * u * std::fabs(dr) + means / n) + 3.0 * u * std::fabs(dx)};
    });
  }
};

}  // namespace

void judge_batch_norm_of_sums(const Operands& norm, DType stored, int output, std::span<const std::int64_t> wanted,
                              std::span<Expected> judged) {
  const bool relu = norm.call.kind == batch_norm_relu_forward_kind;
  (relu ? BatchNormForwardDefinition<true>::judge : BatchNormForwardDefinition<false>::judge)(norm, stored, output,
                                                                                              wanted, judged);
}

std::string batch_norm_of_sums_bound(const CallSpecs& norm, int output) {
  const bool relu = norm.call.kind == batch_norm_relu_forward_kind;
  return (relu ? BatchNormForwardDefinition<true>::rule : BatchNormForwardDefinition<false>::rule)(
      norm, norm.input("x").dtype, output);
}

Definitions batch_norm_definitions() {
  return definitions_of<BatchNormForwardDefinition<false>, BatchNormForwardDefinition<true>,
                        BatchNormBackwardDefinition<false>, BatchNormBackwardDefinition<true>>();
}

}  // namespace gpubench

// Choices are judged by the scores. Let v_i be the exact scores and V_i their bounds. For any scores within these
// bounds, the j-th largest lies between the j-th largest of v - V and that of v + V, since order statistics are
// monotonic. So index i may be at place j if
//     v_i + V_i >= (v - V)_(j)   and   v_i - V_i <= (v + V)_(j)
// Equal scores may come in any order; beyond the bounds of a tie, indices are judged bitwise. Weights, and ops that
// read the indices, are judged by the stored indices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/range_data.h"
#include "reference/ops/routing.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

constexpr double no_answer = std::numeric_limits<double>::quiet_NaN();
// In u, of 1 / (1 + exp(-x)) or exp(x) / (1 + exp(x)): exp three ulps and the product of its argument with log2(e),
// 2 |x|, which count for 1 - s of the result; a sum; a quotient.
double sigmoid_error(double x) {
  const double rest = 1.0 / (1.0 + std::exp(x));
  return 10.0 + (rest > 0.0 && std::isfinite(x) ? 2.0 * std::fabs(x) * rest : 0.0);
}

struct Scores {
  const Routing& routing;
  double u = 0.0, tiny = 0.0;
  std::vector<double> x;
  std::vector<Expected> s;  ///< softmax over all experts, or sigmoids

  Scores(const Operands& operands)
      : routing(operands.call.attributes.as<Routing>()),
        u(accumulator_roundoff(operands.call.math)),
        tiny(smallest_normal(operands.call.math.accumulate)),
        x(static_cast<std::size_t>(operands.input("logits").shape()[1])),
        s(x.size()) {}

  void read(const Operands& operands, std::int64_t token) {
    operands.input("logits").read(token * static_cast<std::int64_t>(x.size()), x);
    if (softmax()) return judge_softmax(x, u, tiny, s);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double value = 1.0 / (1.0 + std::exp(-x[i]));
      s[i] = {value, sigmoid_error(x[i]) * u * value + tiny};
    }
  }
  [[nodiscard]] bool softmax() const { return routing.scores == Routing::Scores::softmax; }
  [[nodiscard]] bool in_range(double index) const { return index >= 0.0 && index < static_cast<double>(x.size()); }

  /// The chosen experts' scores, or their shares of the scores' sum. An index outside the experts counts as 0. A share
  /// of a softmax is that of exp(x - m), as the common divisor cancels, up to two roundings.
  [[nodiscard]] std::vector<Expected> shares(std::span<const double> chosen) const {
    std::vector<Expected> share(chosen.size());
    double sum = 0.0, weighted = 0.0;
    const double largest = *std::max_element(x.begin(), x.end());
    const auto term = [&](std::size_t i) { return softmax() ? exp_error(largest - x[i], u) : sigmoid_error(x[i]) * u; };
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      if (!in_range(chosen[j])) continue;
      const auto i = static_cast<std::size_t>(chosen[j]);
      share[j] = s[i];
      sum += s[i].value;
      if (s[i].value > 0.0) weighted += s[i].value * term(i);
    }
    if (!routing.normalize) return share;
    const double of_sum = weighted / sum + u * (2.0 * std::sqrt(static_cast<double>(chosen.size())) + 6.0);
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      if (!in_range(chosen[j])) continue;
      const double value = share[j].value / sum;
      share[j] = {value, value * (term(static_cast<std::size_t>(chosen[j])) + of_sum) + 2.0 * tiny / sum};
    }
    return share;
  }
};

/// scale f with its bound; `operations`: further roundings.
Expected scaled(const Expected& f, const Scores& row, double operations) {
  const double scale = row.routing.scale;
  const double value = scale * f.value;
  return {value, std::fabs(scale) * f.bound + operations * row.u * std::fabs(value) +
                     std::fabs(scale - round_to(row.u < unit_roundoff(DType::f32) ? DType::f64 : DType::f32, scale)) *
                         std::fabs(f.value)};
}

class ExpertChoice {
 public:
  ExpertChoice(const Scores& row, std::span<const double> bias)
      : row_(row), bias_(bias.begin(), bias.end()), below_(row.x.size()), above_(row.x.size()) {
    bias_.resize(row.x.size());
    for (std::size_t i = 0; i < row.x.size(); ++i) {
      const double v = row.s[i].value + bias_[i];
      const double bound = row.s[i].bound + (bias.empty() ? 0.0 : row.u * std::fabs(v));
      below_[i] = v - bound;
      above_[i] = v + bound;
      order_.push_back(i);
      invalid_ = invalid_ || std::isnan(v);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      if (bias.empty()) return row.x[a] > row.x[b];  // x is exact
      return row.s[a].value + bias_[a] > row.s[b].value + bias_[b];
    });
    sorted_below_ = below_;
    sorted_above_ = above_;
    std::sort(sorted_below_.rbegin(), sorted_below_.rend());
    std::sort(sorted_above_.rbegin(), sorted_above_.rend());
  }

  /// For each of k places: the written index if it is allowed there, else the first of the exact order without an
  /// earlier place; NaN if there is none.
  void judge(std::span<const double> written, std::span<Expected> judged) const {
    std::vector<bool> taken(row_.x.size());
    for (std::size_t j = 0; j < judged.size(); ++j) {
      judged[j] = {no_answer, 0.0};
      if (invalid_) continue;
      std::size_t chosen = *std::ranges::find_if(order_, [&](std::size_t i) { return !taken[i]; });
      if (!written.empty() && row_.in_range(written[j])) {
        const auto i = static_cast<std::size_t>(written[j]);
        if (may_follow(i, j, taken)) chosen = i;
      }
      taken[chosen] = true;
      judged[j] = moved(static_cast<double>(chosen));
    }
  }

 private:
  [[nodiscard]] bool may_follow(std::size_t i, std::size_t place, const std::vector<bool>& taken) const {
    return !taken[i] && above_[i] >= sorted_below_[place] && below_[i] <= sorted_above_[place];
  }

  const Scores& row_;
  std::vector<double> bias_, below_, above_, sorted_below_, sorted_above_;
  std::vector<std::size_t> order_;
  bool invalid_ = false;
};

std::string shares_rule(const Routing& routing, std::int64_t experts, const Math& math) {
  const bool softmax = routing.scores == Routing::Scores::softmax;
  if (!routing.normalize)
    return softmax ? softmax_rule(experts, math) : "u s (10 + 2 |x| (1 - s)) + " + flushed_text(math);
  const std::string term = softmax ? "2 (m - x) + 6" : "10 + 2 |x| (1 - s)";
  return "u q (r + sum q r + 2 sqrt(" + std::to_string(routing.k) + ") + 6) + " +
         power_text(2.0 * smallest_normal(math.accumulate)) + " / sum s, r = " + term;
}

class RoutingForwardDefinition final : public DefinitionOf<routing_forward_kind> {
 public:
  // Scores as in softmax, and k comparisons.
  Cost cost(const CallSpecs& op) const override {
    const auto k = static_cast<double>(op.call.attributes.as<Routing>().k);
    return {(5.0 + k) * elements_of(op.inputs[0]), op.bytes()};
  }

  // Sorting counts as 1.5 comparisons per level.
  CheckUnits units(const CallSpecs& op, int output) const override {
    const Shape& logits = op.inputs[0].shape;
    return norm_row_units(logits, op.output(output).shape[1], 40.0 + 8.0 * std::log2(static_cast<double>(logits[1])));
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Routing& routing = op.call.attributes.as<Routing>();
    Routing of_scores = routing;
    of_scores.normalize = false;
    if (output == 0) {
      return "exact, any of equal scores (within T of the j-th): " +
             bound_text("T = " + shares_rule(of_scores, op.inputs[0].shape[1], op.call.math) +
                            (routing.bias ? " + u |s + bias|" : ""),
                        op.call.math);
    }
    const std::string factor = routing.scale == 1.0 ? "" : number_text(routing.scale) + " T + u |w|, T = ";
    return bound_text("of the stored indices: " + factor + shares_rule(routing, op.inputs[0].shape[1], op.call.math),
                      op.call.math);
  }

  [[nodiscard]] bool reads_written(const OpCall&) const override { return true; }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    if (op.call.attributes.as<Routing>().scores == Routing::Scores::softmax) return rows_far_from_zero(op.inputs[0]);
    // If all chosen logits were below -100, the sum would be 0.
    const RevealingData::Input wide = up_to_100(0);
    const auto logit = [value = wide.value](std::int64_t e) { return value(e) < 0.0 ? 0.25 * value(e) : value(e); };
    return {{"logits of a wide range", {{0, logit, wide.period}}}};
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    Scores row(operands);
    const auto k = static_cast<std::size_t>(row.routing.k);
    std::vector<double> bias(row.routing.bias ? row.x.size() : 0);
    if (row.routing.bias) operands.input("bias").read(0, bias);
    std::vector<double> written(operands.written.empty() ? 0 : k);
    std::vector<Expected> places(k);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      row.read(operands, wanted[i]);
      if (!written.empty()) operands.written[0].read(wanted[i] * row.routing.k, written);
      const std::span<Expected> of_row = judged.subspan(i * k, k);
      if (output == 0 || written.empty()) ExpertChoice(row, bias).judge(written, places);
      if (output == 0) {
        std::copy(places.begin(), places.end(), of_row.begin());
        continue;
      }
      std::vector<double> chosen = written;
      if (written.empty()) {
        for (const Expected& place : places) chosen.push_back(place.value);
      }
      const std::vector<Expected> share = row.shares(chosen);
      for (std::size_t j = 0; j < k; ++j) {
        of_row[j] = row.in_range(chosen[j]) ? scaled(share[j], row, row.routing.scale == 1.0 ? 0.0 : 1.0)
                                            : Expected{no_answer, 0.0};
      }
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dweights = incoming_gradient(call, tape, call.output("weights"));
    const ValueId logits = call.input("logits");
    if (!dweights || !tape.wanted(logits)) return;
    tape.contribute(logits, routing_backward(program, call.attributes.as<Routing>(), call.math,
                                             tape.label(call, "backward"), logits, call.output("indices"), *dweights));
  }
};

// With f the scores, or the chosen ones' shares of their sum, g = 1 for a softmax and 1 - f_sigmoid for a sigmoid,
// D = sum f dw over the chosen (0 for sigmoids that are not normalized) and h = dw (0 if not chosen) - D:
//     dx = scale f g h
// If normalized, and for sigmoids, only the chosen ones get a gradient. The bound is that of three factors and of the
// product's roundings.
class RoutingBackwardDefinition final : public DefinitionOf<routing_backward_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {8.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return norm_row_units(op.inputs[0].shape, op.inputs[0].shape[1], 48.0);
  }

  std::string bound(const CallSpecs& op, int) const override {
    const Routing& routing = op.call.attributes.as<Routing>();
    const std::string factor = routing.scale == 1.0 ? "" : number_text(std::fabs(routing.scale)) + " ";
    const std::string rest = ", h = dw - D, D = sum f dw, T(D) = sum |dw| T(f) + " + sum_error_text(routing.k);
    return bound_text(factor + "(T(f) |g h| + |f| (T(g) |h| + |g| (T(D) + u |h|))) + 4 u |dx|" + rest +
                          ", T(f) = " + shares_rule(routing, op.inputs[0].shape[1], op.call.math),
                      op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    Scores row(operands);
    const std::size_t experts = row.x.size();
    const bool softmax = row.softmax(), all = softmax && !row.routing.normalize;
    std::vector<double> indices(static_cast<std::size_t>(row.routing.k)), dw(indices.size());
    std::vector<double> of_chosen(experts);
    std::vector<Expected> f(experts);
    std::vector<bool> chosen(experts);
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      row.read(operands, wanted[at]);
      operands.input("indices").read(wanted[at] * row.routing.k, indices);
      operands.input("dweights").read(wanted[at] * row.routing.k, dw);
      const std::vector<Expected> share = row.shares(indices);
      ProductSum of_all;
      double of_all_bound = 0.0;
      std::fill(of_chosen.begin(), of_chosen.end(), 0.0);
      std::fill(chosen.begin(), chosen.end(), false);
      f = row.s;
      for (std::size_t j = 0; j < indices.size(); ++j) {
        if (!row.in_range(indices[j])) continue;
        const auto i = static_cast<std::size_t>(indices[j]);
        of_chosen[i] += dw[j];
        chosen[i] = true;
        f[i] = share[j];
        if (!softmax && !row.routing.normalize) continue;
        of_all.add(share[j].value * dw[j]);
        of_all_bound += std::fabs(dw[j]) * share[j].bound;
      }
      of_all_bound += sum_error_bound(of_all, row.u);
      for (std::size_t i = 0; i < experts; ++i) {
        Expected& dx = judged[at * experts + i];
        dx = {0.0, 0.0};
        if (!chosen[i] && !all) continue;
        const double h = of_chosen[i] - of_all.value;
        const double g = softmax ? 1.0 : 1.0 - row.s[i].value;
        const double g_bound = softmax ? 0.0 : row.s[i].bound + row.u * g;
        const Expected product{f[i].value * g * h,
                               f[i].bound * std::fabs(g * h) +
                                   f[i].value * (g_bound * std::fabs(h) + g * (of_all_bound + row.u * std::fabs(h)))};
        dx = scaled(product, row, 4.0);
      }
    }
  }
};

}  // namespace

Definitions routing_definitions() { return definitions_of<RoutingBackwardDefinition, RoutingForwardDefinition>(); }

}  // namespace gpubench

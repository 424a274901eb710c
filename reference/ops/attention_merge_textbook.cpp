// Merges two log-sum-exps and their means. With m the larger, D = |lse1 - lse2| and p the weights:
// lse = m + log(1 + exp(-D)). The error of exp, 2uD + 6u, counts with the smaller p; logarithm, sum and store round:
//   T = u (p (2D + 6) + 2 log(1 + exp(-D)) + 2 |lse|).
// A weight exp(lse_i - lse) has the error of lse as stored, and 2 |lse_i - lse| + 6 ulps.
#include <algorithm>
#include <cmath>

#include "reference/ops/attention.h"
#include "reference/ops/attention_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/range_data.h"

namespace gpubench {
namespace {

struct Joined {
  double weight[2] = {};
  double error[2] = {};  ///< relative, of the weights
  Expected lse;
};

Joined joined(double first, double second, double u, double rounding) {
  const double larger = std::max(first, second);
  if (larger == -HUGE_VAL) return {.lse = {larger, 0.0}};
  const double exponential = std::exp(-std::fabs(first - second));
  const double logarithm = std::log1p(exponential);
  Joined all;
  all.lse.value = larger + logarithm;
  const double apart = exponential > 0.0 ? std::fabs(first - second) : 0.0;
  all.lse.bound =
      u * (exponential / (1.0 + exponential) * (2.0 * apart + 6.0) + 2.0 * logarithm + 2.0 * std::fabs(all.lse.value));
  const double of_lse = std::expm1(all.lse.bound + rounding * std::fabs(all.lse.value));
  for (int i = 0; i < 2; ++i) {
    const double exponent = (i == 0 ? first : second) - all.lse.value;
    all.weight[i] = std::exp(exponent);
    if (all.weight[i] > 0.0) all.error[i] = of_lse + (1.0 + of_lse) * u * (2.0 * std::fabs(exponent) + 6.0);
  }
  return all;
}

class AttentionMerge final : public DefinitionOf<attention_merge_kind> {
 public:
  // Per element: two products and a sum; per row: two exponentials and a logarithm.
  Cost cost(const CallSpecs& op) const override {
    return {3.0 * elements_of(op.input("o1")) + 6.0 * elements_of(op.input("lse1")), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, 80.0);  // an exp or logarithm counts as sixteen
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const std::string of_lse = "u (p (2D + 6) + 2 log(1 + exp(-D)) + 2|lse|), D = |lse1 - lse2|, p the smaller weight";
    if (output == 1) return bound_text(of_lse, op.call.math);
    const std::string rounding = power_text(unit_roundoff(op.outputs[1].dtype));
    return bound_text(
        "sum p_i |o_i| (e^(T + " + rounding + " |lse|) (1 + u (2|lse_i - lse| + 6)) - 1 + 2u) + u |o|, T = " + of_lse,
        op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    const double rounding = unit_roundoff(operands.outputs[1].dtype);
    const TensorView &first = operands.input("lse1"), &second = operands.input("lse2");
    const Shape& o = operands.input("o1").shape();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t row = output == 0 ? lse_row(o, wanted[i]) : wanted[i];
      const Joined all = joined(first[row], second[row], u, rounding);
      judged[i] = output == 1 ? all.lse : mean(operands, wanted[i], all, u);
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    const auto lse = [&](std::string_view name, std::int64_t kinds) {
      return RevealingData::Input{
          *position_of(op.call.kind.inputs, op.call.attributes, name),
          [kinds](std::int64_t row) { return far_from_zero(row) + static_cast<double>(row % kinds); }};
    };
    return {{"log-sum-exps far from 0", {lse("lse1", 5), lse("lse2", 7)}}};
  }

 private:
  static Expected mean(const Operands& operands, std::int64_t element, const Joined& all, double u) {
    Expected o{0.0, 0.0};
    for (int i = 0; i < 2; ++i) {
      const double term = all.weight[i] * operands.input(i == 0 ? "o1" : "o2")[element];
      o.value += term;
      if (term != 0.0) o.bound += std::fabs(term) * (all.error[i] + 2.0 * u);
    }
    o.bound += u * std::fabs(o.value);
    return o;
  }
};

}  // namespace

Definitions attention_merge_definitions() { return definitions_of<AttentionMerge>(); }

}  // namespace gpubench

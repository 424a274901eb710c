// Hyperparameters are doubles, which a backend in f32 rounds once, as 1 - beta and the bias corrections. Bounds count
// the operations of each formula, and allow for cancellation in m' = b1 m + (1 - b1) g and in SGD's sums.
#include <algorithm>
#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

class GradientNormDefinition : public DefinitionOf<gradient_norm_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {2.0 * elements_of(op.inputs), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, 4.0 * elements_of(op.inputs));
  }

  std::string bound(const CallSpecs& op, int) const override {
    std::int64_t terms = 0;
    for (const TensorSpec& gradient : op.inputs) terms += gradient.shape.elements();
    return bound_text("T / (2 n) + 2 u n, T = Rule G of n^2: " + sum_error_text(terms), op.call.math);
  }

  // n = sqrt(s): an error of s counts 1 / (2 n), then the root itself.
  void evaluate(const Operands& operands, int, std::span<const std::int64_t>,
                std::span<Expected> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    ProductSum squares;
    for (const TensorView& gradient : operands.inputs) {
      for_each_chunk(gradient, [&squares](std::int64_t, std::span<const double> values) {
        for (const double g : values) squares.add(g * g);
      });
    }
    const double norm = std::sqrt(squares.value);
    const double of_sum = operands.exact_sums ? 0.0 : sum_error_bound(squares, u);
    const double bound = norm == 0.0 ? 0.0 : of_sum / (2.0 * norm) + 2.0 * u * norm;
    std::fill(judged.begin(), judged.end(), Expected{norm, bound});
  }

  // Ones among zeros, few enough that each counts, at both ends of each gradient.
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    constexpr double ones = 4096.0;  // each one is 2^-13 of the norm, whose roundings are 2^-24
    RevealingData data{"few gradients that are not 0", {}, true};
    const auto step = static_cast<std::int64_t>(std::ceil(elements_of(op.inputs) / ones));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const std::int64_t last = op.inputs[i].shape.elements() - 1;
      data.inputs.push_back({i, [=](std::int64_t e) { return e % step == 0 || e == last ? 1.0 : 0.0; }});
    }
    RevealingData zeros{"gradients of 0", {}, true};
    for (std::size_t i = 0; i < op.inputs.size(); ++i) zeros.inputs.push_back({i, [](std::int64_t) { return 0.0; }, 1});
    return {data, zeros};
  }
};

// The factor of gradients; NaN for a NaN norm. The op's 1e-6 is that of PyTorch's clip_grad_norm_.
double clip_factor(const TensorView& norm, double limit) {
  const double wanted = limit / (norm[0] + 1e-6);  // by definition
  return wanted >= 1.0 ? 1.0 : wanted;
}

// A norm just above the limit, whose factor the 1e-6 moves by 16 u; at the limit, where only the 1e-6 makes the factor
// less than 1; and below it, where gradients must not change.
std::vector<RevealingData> near_the_limit(const CallSpecs& op, double limit) {
  const std::optional<std::size_t> norm = position_of(op.call.kind.inputs, op.call.attributes, "norm");
  if (!norm) return {};
  return {{"a norm just above the limit", {{*norm, [limit](std::int64_t) { return 1.0625 * limit; }}}},
          {"a norm at the limit", {{*norm, [limit](std::int64_t) { return limit; }}}},
          {"a norm below the limit", {{*norm, [limit](std::int64_t) { return 0.75 * limit; }}}}};
}

class ClipDefinition : public DefinitionOf<clip_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {elements_of(op.outputs), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, 4.0);
  }

  std::string bound(const CallSpecs& op, int) const override { return bound_text("4 u |g'|", op.call.math); }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    const double factor = clip_factor(operands.inputs[0], operands.call.attributes.as<Clip>().limit);
    judge_elements<1>({operands.inputs[static_cast<std::size_t>(output) + 1]}, wanted, judged,
                      [&](std::int64_t, const auto& in) {
                        const double clipped = in[0] * factor;
                        return Expected{clipped, 4.0 * u * std::fabs(clipped)};
                      });
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return near_the_limit(op, op.call.attributes.as<Clip>().limit);
  }
};

// Rules of update ops: `read` takes the shared inputs of a call; `judge` computes one result of one parameter, chosen
// by the first letter of the output's name; `bound` is that bound in words.

// A clipped gradient has an error of e |g|, e = 4 u as of clip: v' moves by 2 e of its new part, its root by e of all.
// A gradient that includes the decay (l2) has T(g) more, as its terms may cancel.
struct AdamWRule {
  AdamW attributes;
  std::optional<double> limit;
  double u = 0.0, lr = 0.0, correction1 = 1.0, correction2 = 1.0, factor = 1.0;

  explicit AdamWRule(const OpCall& call)
      : attributes(adamw_call(call).adamw), limit(adamw_call(call).limit), u(accumulator_roundoff(call.math)) {}

  void read(const Named<TensorView>& in) {
    lr = in["lr"][0];
    correction1 = 1.0 - std::pow(attributes.beta1, in["step"][0]);
    correction2 = 1.0 - std::pow(attributes.beta2, in["step"][0]);
    if (limit) factor = clip_factor(in["norm"], *limit);
  }

  [[nodiscard]] double flop() const { return limit ? 19.0 : 18.0; }
  [[nodiscard]] double e() const { return limit ? 4.0 * u : 0.0; }

  Expected judge(char output, double w, double given, double m, double v) const {
    const Expected g = gradient(w, given * factor);
    return output == 'm' ? first_moment(g, m) : output == 'v' ? second_moment(g, v) : weight(w, g, m, v);
  }

  std::string bound(char output) const {
    return output == 'm' ? first_moment_bound() : output == 'v' ? second_moment_bound() : weight_bound();
  }

  Expected gradient(double w, double clipped) const {
    const double decay = attributes.l2 ? attributes.weight_decay * w : 0.0;
    const double bound =
        attributes.l2 ? u * (std::fabs(clipped) + 3.0 * std::fabs(decay)) + e() * std::fabs(decay) : 0.0;
    return {clipped + decay, bound};
  }
  std::string of_gradient(const std::string& times) const { return attributes.l2 ? " + " + times + " T(g)" : ""; }
  std::string gradient_bound() const {
    if (!attributes.l2) return "";
    const std::string decay = number_text(attributes.weight_decay);
    return ", T(g) = u (|g| + 3|" + decay + " w|)" + (limit ? " + 4 u |" + decay + " w|" : "");
  }

  Expected first_moment(const Expected& g, double m) const {
    const double old_part = attributes.beta1 * m;
    const double new_part = (1.0 - attributes.beta1) * g.value;
    return {old_part + new_part, 3.0 * u * (std::fabs(old_part) + std::fabs(new_part)) + e() * std::fabs(new_part) +
                                     (1.0 - attributes.beta1) * g.bound};
  }
  std::string first_moment_rule() const {
    const std::string b1 = number_text(attributes.beta1);
    return "3 u (|" + b1 + " m| + |(1 - " + b1 + ") g|)" + of_gradient("(1 - " + b1 + ")") +
           (limit ? " + 4 u |(1 - " + b1 + ") g|, g as clipped" : "");
  }
  std::string first_moment_bound() const { return first_moment_rule() + gradient_bound(); }

  Expected second_moment(const Expected& g, double v) const {
    const double new_part = (1.0 - attributes.beta2) * g.value * g.value;
    const double value = attributes.beta2 * v + new_part;
    return {value, 3.0 * u * std::fabs(value) + 2.0 * e() * new_part +
                       (1.0 - attributes.beta2) * (2.0 * std::fabs(g.value) + g.bound) * g.bound};
  }
  std::string second_moment_bound() const {
    const std::string b2 = number_text(attributes.beta2);
    return "3 u |v'|" + of_gradient("(1 - " + b2 + ") (2|g| + T(g))") +
           (limit ? " + 8 u (1 - " + b2 + ") g^2, g as clipped" : "") + gradient_bound();
  }

  Expected weight(double w, const Expected& g, double m, double v) const {
    const Expected moment = first_moment(g, m);
    const double second = second_moment(g, v).value;
    const double denominator = std::sqrt(second / correction2) + attributes.epsilon;
    const double update = moment.value / correction1 / denominator;
    const double decay = attributes.l2 ? 0.0 : attributes.weight_decay * w;
    const double of_root = second > 0.0 ? (1.0 - attributes.beta2) * std::fabs(g.value) * g.bound / second : 0.0;
    const double update_bound =
        (16.0 * u + e() + of_root) * std::fabs(update) + moment.bound / (correction1 * denominator);
    const double rate = std::fabs(lr);
    return {w - lr * (update + decay),
            2.0 * u * std::fabs(w) + rate * update_bound + 4.0 * u * rate * std::fabs(decay)};
  }
  // s: the update without decay; c1, c2: the bias corrections.
  std::string weight_bound() const {
    return std::string("2 u |w| + |lr| (") + (limit ? "20" : "16") + " u |s|" +
           of_gradient("(1 - " + number_text(attributes.beta2) + ") |g s| / v'") + " + T / (c1 d)" +
           (attributes.l2 ? "" : " + 4 u |" + number_text(attributes.weight_decay) + " w|") +
           "), s = m' / (c1 d), d = sqrt(v' / c2) + " + number_text(attributes.epsilon) +
           ", T = " + first_moment_rule() + gradient_bound();
  }
};

// A sign is known if its argument exceeds its error.
struct LionRule {
  Lion attributes;
  double u = 0.0, lr = 0.0;

  explicit LionRule(const OpCall& call) : attributes(call.attributes.as<Lion>()), u(accumulator_roundoff(call.math)) {}

  void read(const Named<TensorView>& in) { lr = in["lr"][0]; }

  [[nodiscard]] double flop() const { return attributes.weight_decay == 0.0 ? 9.0 : 11.0; }

  [[nodiscard]] Expected blend(double beta, double m, double g) const {
    const double old_part = beta * m, new_part = (1.0 - beta) * g;
    return {old_part + new_part, 3.0 * u * (std::fabs(old_part) + std::fabs(new_part))};
  }

  Expected judge(char output, double w, double g, double m, double /*v*/) const {
    if (output == 'm') return blend(attributes.beta2, m, g);
    const Expected c = blend(attributes.beta1, m, g);
    const bool known = !(std::fabs(c.value) <= c.bound) || c.bound == 0.0;
    const double sign = c.value > 0.0 ? 1.0 : c.value < 0.0 ? -1.0 : c.value;  // NaN stays NaN
    const double decay = attributes.weight_decay * w;
    const double rate = std::fabs(lr);
    return {w - lr * ((known ? sign : 0.0) + decay),
            (known ? 0.0 : rate) + 2.0 * u * std::fabs(w) + rate * u * (3.0 + 4.0 * std::fabs(decay))};
  }

  std::string bound(char output) const {
    const std::string b = number_text(output == 'm' ? attributes.beta2 : attributes.beta1);
    const std::string blend = "3 u (|" + b + " m| + |(1 - " + b + ") g|)";
    if (output == 'm') return blend;
    return "2 u |w| + |lr| u (3 + 4|" + number_text(attributes.weight_decay) + " w|), and |lr| where |" + b +
           " m + (1 - " + b + ") g| <= " + blend;
  }
};

// Each operation and constant is rounded once. The errors of d, two to four roundings, enter m' and, with Nesterov's
// rule, also the step directly.
struct SgdRule {
  Sgd attributes;
  double u = 0.0, lr = 0.0;

  explicit SgdRule(const OpCall& call) : attributes(call.attributes.as<Sgd>()), u(accumulator_roundoff(call.math)) {}

  void read(const Named<TensorView>& in) { lr = in["lr"][0]; }

  [[nodiscard]] double flop() const {
    return 4.0 + (attributes.weight_decay == 0.0 ? 0.0 : 2.0) + (attributes.nesterov ? 2.0 : 0.0);
  }

  Expected judge(char output, double w, double g, double m, double /*v*/) const {
    const double decay = attributes.weight_decay * w;
    const double old_part = attributes.momentum * m;
    const double d = g + decay;
    const Expected moment{old_part + d, u * (3.0 * std::fabs(old_part) + 2.0 * std::fabs(g) + 4.0 * std::fabs(decay))};
    if (output == 'm') return moment;
    Expected step = moment;
    if (attributes.nesterov) {
      const double part = attributes.momentum * moment.value;
      step = {d + part, u * (2.0 * std::fabs(g) + 4.0 * std::fabs(decay) + 3.0 * std::fabs(part)) +
                            std::fabs(attributes.momentum) * moment.bound};
    }
    return {w - lr * step.value, u * std::fabs(w) + std::fabs(lr) * (step.bound + 2.0 * u * std::fabs(step.value))};
  }

  std::string bound(char output) const {
    const std::string mu = number_text(attributes.momentum);
    const std::string of_d = "2|g| + 4|" + number_text(attributes.weight_decay) + " w|";
    const std::string moment = "u (3|" + mu + " m| + " + of_d + ")";
    if (output == 'm') return moment;
    if (!attributes.nesterov) return "u |w| + |lr| (T + 2 u |m'|), T = " + moment;
    return "u |w| + |lr| (u (" + of_d + " + 3|" + mu + " m'|) + " + mu + " T + 2 u |s|), s = d + " + mu +
           " m', T = " + moment;
  }
};

// An update of f32 masters and moments; low-precision copies are casts of the masters.
template <class Rule, const OpKind& op_kind>
class UpdateDefinition : public DefinitionOf<op_kind> {
 public:
  // The low-precision copy is written but not read.
  Cost cost(const CallSpecs& op) const override {
    const Named<TensorSpec> operand(op.call, op.inputs);
    double parameters = 0.0;
    double unread = 0.0;
    for (std::size_t i = 0; const TensorSpec* weight = operand.find("w", i); ++i) {
      parameters += elements_of(*weight);
      if (const TensorSpec* copy = operand.find("copy", i)) unread += bytes_moved(*copy);
    }
    return {Rule(op.call).flop() * parameters, op.bytes() - unread};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, 30.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const OperandName out = name_of(op.call, output);
    if (out.name == "copy'") {
      return "exact, bitwise: w' as stored, rounded once to " + std::string(name(op.output(output).dtype));
    }
    const std::string rule = bound_text(Rule(op.call).bound(out.name[0]), op.call.math);
    return op.call.attributes.has("found_inf") ? "exact where found_inf is set, else " + rule : rule;
  }

  bool reads_written(const OpCall& call) const override { return call.attributes.has("copy'"); }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    std::vector<RevealingData> all;
    if constexpr (requires { Rule(op.call).limit; }) {
      if (const std::optional<double> limit = Rule(op.call).limit) all = near_the_limit(op, *limit);
    }
    std::vector<RevealingData::Input> zeros = zero_moments(op);
    if (!all.empty()) {  // in the last launch, which leaves gradients unchanged
      all.back().name = "a norm below the limit, gradients and moments of 0";
      std::ranges::move(zeros, std::back_inserter(all.back().inputs));
    } else if (!zeros.empty()) {
      all.push_back({"gradients and moments of 0", std::move(zeros)});
    }
    if (const auto found = position_of(op.call.kind.inputs, op.call.attributes, "found_inf"))
      all.push_back({"a step to be skipped", {{*found, [](std::int64_t) { return 1.0; }}}});
    return all;
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Named<TensorView> in(operands.call, operands.inputs);
    const OperandName out = name_of(operands.call, output);
    if (const TensorView* found = in.find("found_inf"); found != nullptr && (*found)[0] != 0.0) {
      judge_elements<1>({in.at(out.name.substr(0, out.name.size() - 1), out.item)}, wanted, judged,
                        [](std::int64_t, const auto& old) { return moved(old[0]); });
      return;
    }
    const std::size_t weight_at = *position_of(op_kind.outputs, operands.call.attributes, "w'", out.item);
    const bool copy = out.name == "copy'";
    if (copy && !operands.written.empty()) {  // of the stored weight, which is judged itself
      judge_elements<1>({operands.written[weight_at]}, wanted, judged,
                        [](std::int64_t, const auto& weight) { return moved(weight[0]); });
      return;
    }
    Rule rule(operands.call);
    rule.read(in);
    const TensorView& m = in.at("m", out.item);
    const TensorView* v = in.find("v", out.item);
    const DType master = operands.outputs[weight_at].dtype;
    judge_elements<4>({in.at("w", out.item), in.at("g", out.item), m, v == nullptr ? m : *v}, wanted, judged,
                      [&](std::int64_t, const auto& x) {
                        const Expected result = rule.judge(copy ? 'w' : out.name[0], x[0], x[1], x[2], x[3]);
                        return copy ? moved(round_to(master, result.value)) : result;
                      });
  }

 private:
  // With v' = 0 only epsilon keeps the update finite. For the smallest parameter, which is cheapest.
  static std::vector<RevealingData::Input> zero_moments(const CallSpecs& op) {
    const auto at = [&](std::string_view name, std::size_t item) {
      return position_of(op.call.kind.inputs, op.call.attributes, name, item);
    };
    if (!at("v", 0)) return {};
    std::size_t smallest = 0;
    const Named<TensorSpec> in(op.call, op.inputs);
    for (std::size_t item = 1; const TensorSpec* w = in.find("w", item); ++item) {
      if (w->shape.elements() < in.at("w", smallest).shape.elements()) smallest = item;
    }
    std::vector<RevealingData::Input> zeros;
    for (const std::string_view name : {"g", "m", "v"})
      zeros.push_back({*at(name, smallest), [](std::int64_t e) { return e % 2 == 0 ? 0.0 : 1.0; }, 2});
    return zeros;
  }

  static OperandName name_of(const OpCall& call, int output) {
    const auto index = static_cast<std::size_t>(output);
    const std::vector<OperandName> of_one = operand_names(call.kind.outputs, call.attributes, 1);
    return {of_one[index % of_one.size()].name, index / of_one.size()};
  }
};

}  // namespace

Definitions optimizer_definitions() {
  return definitions_of<UpdateDefinition<AdamWRule, adamw_kind>, UpdateDefinition<AdamWRule, clip_adamw_kind>,
                        UpdateDefinition<LionRule, lion_kind>, UpdateDefinition<SgdRule, sgd_kind>, ClipDefinition,
                        GradientNormDefinition>();
}

}  // namespace gpubench

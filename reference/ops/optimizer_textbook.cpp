// Hyperparameters are doubles; 1 - beta and the bias corrections are rounded once by a backend that works in f32.
// Bounds count the operations of each formula and follow the one place where terms may cancel, m' = b1 m + (1 - b1) g.
#include <algorithm>
#include <cmath>

#include "reference/ops/definition.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

double elements_of(std::span<const TensorSpec> tensors) {
  double elements = 0.0;
  for (const TensorSpec& tensor : tensors) elements += gpubench::elements_of(tensor);
  return elements;
}

class GradientNormDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return gradient_norm_kind; }

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
    const double bound = norm == 0.0 ? 0.0 : sum_error_bound(squares, u) / (2.0 * norm) + 2.0 * u * norm;
    std::fill(judged.begin(), judged.end(), Expected{norm, bound});
  }
};

// What gradients are multiplied with; a NaN norm stays NaN.
double clip_factor(const TensorView& norm, double limit) {
  const double wanted = limit / (norm[0] + 1e-6);
  return wanted >= 1.0 ? 1.0 : wanted;
}

class ClipDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return clip_kind; }

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
};

// One parameter's step: each result, what rounding may do to it, and that rule in words. A clipped gradient may be off
// by e |g|, e = 4 u as clip's: v' by 2 e of its new part, so its root by e of all of it.
struct AdamWStep {
  AdamW attributes;
  bool clips = false;
  double u = 0.0, lr = 0.0, correction1 = 1.0, correction2 = 1.0;

  [[nodiscard]] double e() const { return clips ? 4.0 * u : 0.0; }

  Expected first_moment(double g, double m) const {
    const double old_part = attributes.beta1 * m;
    const double new_part = (1.0 - attributes.beta1) * g;
    return {old_part + new_part, 3.0 * u * (std::fabs(old_part) + std::fabs(new_part)) + e() * std::fabs(new_part)};
  }
  std::string first_moment_bound() const {
    const std::string b1 = number_text(attributes.beta1);
    return "3 u (|" + b1 + " m| + |(1 - " + b1 + ") g|)" + (clips ? " + 4 u |(1 - " + b1 + ") g|, g as clipped" : "");
  }

  Expected second_moment(double g, double v) const {
    const double new_part = (1.0 - attributes.beta2) * g * g;
    const double value = attributes.beta2 * v + new_part;
    return {value, 3.0 * u * std::fabs(value) + 2.0 * e() * new_part};
  }
  std::string second_moment_bound() const {
    return "3 u |v'|" + (clips ? " + 8 u (1 - " + number_text(attributes.beta2) + ") g^2, g as clipped" : "");
  }

  Expected weight(double w, double g, double m, double v) const {
    const Expected moment = first_moment(g, m);
    const double denominator = std::sqrt(second_moment(g, v).value / correction2) + attributes.epsilon;
    const double update = moment.value / correction1 / denominator;
    const double decay = attributes.weight_decay * w;
    const double update_bound = (16.0 * u + e()) * std::fabs(update) + moment.bound / (correction1 * denominator);
    const double rate = std::fabs(lr);
    return {w - lr * (update + decay),
            2.0 * u * std::fabs(w) + rate * update_bound + 4.0 * u * rate * std::fabs(decay)};
  }
  // s: the update without its decay; c1 and c2: the bias corrections.
  std::string weight_bound() const {
    return std::string("2 u |w| + |lr| (") + (clips ? "20" : "16") + " u |s| + T / (c1 d) + 4 u |" +
           number_text(attributes.weight_decay) + " w|), s = m' / (c1 d), d = sqrt(v' / c2) + " +
           number_text(attributes.epsilon) + ", T = " + first_moment_bound();
  }
};

// adamw and clip_adamw.
template <const OpKind& adamw_or_clip_adamw>
class AdamWDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return adamw_or_clip_adamw; }

  // Eighteen operations per parameter, and one to clip. The low-precision copy is written, never read.
  Cost cost(const CallSpecs& op) const override {
    const Named<TensorSpec> operand(op.call, op.inputs);
    double parameters = 0.0;
    double unread = 0.0;
    for (std::size_t i = 0; const TensorSpec* weight = operand.find("w", i); ++i) {
      parameters += gpubench::elements_of(*weight);
      if (const TensorSpec* copy = operand.find("copy", i)) unread += bytes_moved(*copy);
    }
    return {(clips ? 19.0 : 18.0) * parameters, op.bytes() - unread};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return element_units(op.output(output).shape, 30.0);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const AdamWStep step{adamw_call(op.call).adamw, clips};
    const OperandName out = name_of(op.call, output);
    if (out.name == "w'") return bound_text(step.weight_bound(), op.call.math);
    if (out.name == "m'") return bound_text(step.first_moment_bound(), op.call.math);
    if (out.name == "v'") return bound_text(step.second_moment_bound(), op.call.math);
    return "exact, bitwise: w' as stored, rounded once to " + std::string(name(op.output(output).dtype));
  }

  bool reads_written(const OpCall& call) const override { return adamw_call(call).outputs == 4; }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const AdamWCall call = adamw_call(operands.call);
    const Named<TensorView> in(operands.call, operands.inputs);
    const double step = in["step"][0];
    const AdamWStep adamw{call.adamw,
                          clips,
                          accumulator_roundoff(operands.call.math),
                          in["lr"][0],
                          1.0 - std::pow(call.adamw.beta1, step),
                          1.0 - std::pow(call.adamw.beta2, step)};
    const double factor = clips ? clip_factor(in["norm"], *call.limit) : 1.0;
    const OperandName out = name_of(operands.call, output);
    const std::size_t weight_at = *position_of(kind().outputs, operands.call.attributes, "w'", out.item);
    if (out.name == "copy'" && !operands.written.empty()) {  // of the stored weight, which is judged itself
      judge_elements<1>({operands.written[weight_at]}, wanted, judged,
                        [](std::int64_t, const auto& weight) { return moved(weight[0]); });
      return;
    }
    const DType master = operands.outputs[weight_at].dtype;
    judge_elements<4>({in.at("w", out.item), in.at("g", out.item), in.at("m", out.item), in.at("v", out.item)}, wanted,
                      judged, [&, which = out.name[0]](std::int64_t, const auto& x) {
                        const auto [w, unclipped, m, v] = x;
                        const double g = unclipped * factor;
                        if (which == 'm') return adamw.first_moment(g, m);
                        if (which == 'v') return adamw.second_moment(g, v);
                        const Expected weight = adamw.weight(w, g, m, v);
                        return which == 'c' ? moved(round_to(master, weight.value)) : weight;
                      });
  }

 private:
  static constexpr bool clips = adamw_or_clip_adamw.name == clip_adamw_kind.name;

  static OperandName name_of(const OpCall& call, int output) {
    const auto index = static_cast<std::size_t>(output);
    const std::size_t lists = adamw_call(call).outputs;  // they alternate
    return {operand_names(call.kind.outputs, call.attributes, lists)[index % lists].name, index / lists};
  }
};

}  // namespace

std::span<const OpDefinition* const> optimizer_definitions() {
  return definitions_of<AdamWDefinition<adamw_kind>, AdamWDefinition<clip_adamw_kind>, ClipDefinition,
                        GradientNormDefinition>();
}

}  // namespace gpubench


#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "harness/parity/faults.h"
#include "harness/parity/textbook_outputs.h"
#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/dropout.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace {

/// The defaults of PyTorch, TensorFlow, JAX and model configurations, and none.
constexpr std::array usual_epsilons{0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-3};

/// A group that is normalized together: a row, or a channel of a batch.
struct Line {
  double n = 1.0, mean = 0.0, variance = 0.0, square = 0.0;  ///< `square`: the mean of the squares
};

/// How a norm is computed: y = round((x - mean) rstd) gamma + beta.
struct NormForm {
  std::string name;
  std::function<double(const Line&)> rstd;
  bool centered = true;       ///< the mean is subtracted
  bool rounded = false;       ///< to y's type, before gamma
  bool narrow_gamma = false;  ///< gamma in y's type
  double added_to_gamma = 0.0;
  [[nodiscard]] bool is_of_rstd() const { return !rounded && added_to_gamma == 0.0; }
};

struct Lines {
  explicit Lines(const Operands& of) : operands(of) {}
  const Line& operator[](std::int64_t index) {
    const auto known = held.find(index);
    return known != held.end() ? known->second : held.emplace(index, line(index)).first->second;
  }
  [[nodiscard]] bool are_channels() const { return operands.call.kind == batch_norm_forward_kind; }
  [[nodiscard]] const Line& of_element(std::int64_t e) {
    const std::int64_t width = operands.input("x").shape()[-1];
    return (*this)[are_channels() ? e % width : e / width];
  }
  [[nodiscard]] double element(std::int64_t e) const {
    const double x = operands.input("x")[e];
    if (operands.call.kind != residual_norm_forward_kind) return x;
    return round_to(operands.outputs[0].dtype, x + operands.input("r")[e]);
  }
  [[nodiscard]] Line line(std::int64_t index) const {
    const Shape& shape = operands.input("x").shape();
    const std::int64_t width = shape[-1], count = are_channels() ? shape.elements() / width : width;
    Line line{static_cast<double>(count)};
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(element(are_channels() ? i * width + index : index * width + i));
    for (const double value : values) line.mean += value / line.n;
    for (const double value : values) {
      line.variance += (value - line.mean) * (value - line.mean) / line.n;
      line.square += value * value / line.n;
    }
    return line;
  }

  Operands operands;
  std::map<std::int64_t, Line> held{};
};

class Formulas {
 public:
  Formulas(const Operands& operands, int output)
      : operands_(operands), call_(operands.call), output_(output), type_(spec().dtype) {}

  std::vector<OtherFormula> all() {
    const auto is = [this](const auto&... kinds) { return ((call_.kind == kinds) || ...); };
    if (is(layer_norm_forward_kind, rms_norm_forward_kind, residual_norm_forward_kind, batch_norm_forward_kind))
      norms();
    if (is(batch_norm_forward_kind, batch_norm_relu_forward_kind)) momentum();
    if (is(attention_forward_kind, attention_backward_kind)) scales();
    if (is(attention_forward_kind)) interleaved_heads();
    if (is(adamw_kind, clip_adamw_kind)) adamw();
    if (is(conv2d_forward_kind, conv2d_backward_data_kind)) flipped_filter();
    if (is(dropout_kind)) complement("p");
    other_epsilons();
    return std::move(formulas_);
  }

 private:
  [[nodiscard]] const TensorSpec& spec() const { return operands_.outputs[static_cast<std::size_t>(output_)]; }
  [[nodiscard]] bool is_output(std::string_view name, std::size_t item = 0) const {
    return position_of(call_.kind.outputs, call_.attributes, name, item) == static_cast<std::size_t>(output_);
  }

  /// Uses 1 - share for a share.
  void complement(std::string_view share) {
    const double own = number_of(call_, share).value();
    if (own != 0.5) with(share, 1.0 - own, own);
  }

  void with(std::string_view attribute, double value, double own) {
    std::string name = fmt::format("{} {:g} for {:g}", attribute, value, own);
    OpCall call = call_;
    call.attributes.set(attribute, value);
    formulas_.push_back({std::move(name), [operands = operands_, output = output_,
                                           call = std::move(call)](std::span<const std::int64_t> elements) {
                           return expected_elements(replaced(operands, call, operands.inputs), output, elements);
                         }});
  }

  void each(std::string name, std::function<double(std::int64_t, const Expected&)> value) {
    formulas_.push_back({std::move(name), [operands = operands_, output = output_,
                                           value = std::move(value)](std::span<const std::int64_t> elements) {
                           std::vector<Expected> all = expected_elements(operands, output, elements);
                           for (std::size_t i = 0; i < elements.size(); ++i) {
                             const double other = value(elements[i], all[i]);
                             // An error is relative to the result, except where terms cancel.
                             const double larger = std::fabs(other / all[i].value);
                             if (larger > 1.0) all[i].bound *= std::min(larger, 4.0);
                             all[i].value = other;
                           }
                           return all;
                         }});
  }

  void on(
      std::string_view input, std::string name, const std::function<void(HostTensor&)>& change,
      const std::function<std::int64_t(std::int64_t)>& place = [](std::int64_t e) { return e; }) {
    const auto at = *position_of(call_.kind.inputs, call_.attributes, input);
    if (operands_.inputs[at].shape().elements() > max_changed_elements) return;
    formulas_.push_back(
        {std::move(name), [=, operands = operands_, output = output_](std::span<const std::int64_t> elements) {
           HostTensor changed(operands.inputs[at]);
           change(changed);
           std::vector<TensorView> inputs(operands.inputs.begin(), operands.inputs.end());
           inputs[at] = changed.view();
           return expected_elsewhere(replaced(operands, operands.call, inputs), output, elements, place);
         }});
  }

  void other_epsilons() {
    const std::optional<double> own = number_of(call_, "epsilon");
    if (!own) return;
    for (const double other : usual_epsilons) {
      // Tenfold is CallFault::wrong_epsilon; 10 * 1e-6 is not exactly 1e-5.
      const bool is_tenfold = std::fabs(other - 10.0 * *own) < *own;
      if (other != *own && !is_tenfold) with("epsilon", other, *own);
    }
  }

  void norms() {
    const bool centered = call_.kind != rms_norm_forward_kind;
    const double epsilon = number_of(call_, "epsilon").value();
    const auto spread = [centered](const Line& of) { return centered ? of.variance : of.square; };
    const auto own = [=](const Line& of) { return 1.0 / std::sqrt(spread(of) + epsilon); };
    std::vector<NormForm> forms{{"epsilon added to the root",
                                 [=](const Line& of) { return 1.0 / (std::sqrt(spread(of)) + epsilon); }, centered},
                                {"gamma + 1 for gamma", own, centered, false, false, 1.0}};
    const bool rounds = call_.kind == rms_norm_forward_kind && call_.attributes.as<RmsNorm>().rounds_before_gamma;
    if (bits_of(type_) < bits_of(call_.math.accumulate)) {
      if (centered) forms.push_back({"rounded before gamma", own, centered, true});  // a switch of other norms
      forms.push_back({fmt::format("rounded before gamma, and gamma to {}", name(type_)), own, centered, true, true});
    }
    if (centered) {
      forms.push_back({"variance over n - 1",
                       [=](const Line& of) { return 1.0 / std::sqrt(of.variance * of.n / (of.n - 1.0) + epsilon); }});
      forms.push_back(
          {"mean not subtracted", [=](const Line& of) { return 1.0 / std::sqrt(of.square + epsilon); }, false});
    } else {
      forms.push_back({"mean subtracted", [=](const Line& of) { return 1.0 / std::sqrt(of.variance + epsilon); }});
    }
    // The catalogue tries forms on several threads, so each has separate lines.
    for (NormForm& form : forms) {
      if (is_output("rstd") && form.is_of_rstd()) {
        each(form.name, [rstd = form.rstd, lines = Lines(operands_)](std::int64_t e, const Expected&) mutable {
          return rstd(lines[e]);
        });
      }
      form.rounded = form.rounded || rounds;
      if (is_output("y")) normalize(std::move(form));
    }
    if (!is_output("running_var'")) return;
    const double part = call_.attributes.as<BatchNorm>().momentum;
    each("biased running variance", [=, lines = Lines(operands_)](std::int64_t e, const Expected&) mutable {
      return (1.0 - part) * lines.operands.input("running_var")[e] + part * lines[e].variance;
    });
  }

  void normalize(NormForm form) {
    const std::int64_t width = spec().shape[-1];
    const std::string name = form.name;
    each(name,
         [=, form = std::move(form), type = type_, lines = Lines(operands_)](std::int64_t e, const Expected&) mutable {
           const Line& of = lines.of_element(e);
           const Operands& in = lines.operands;
           double normalized = (lines.element(e) - (form.centered ? of.mean : 0.0)) * form.rstd(of);
           if (form.rounded) normalized = round_to(type, normalized);
           const double beta = declares(in.call.kind.inputs, "beta") ? in.input("beta")[e % width] : 0.0;
           const double gamma = in.input("gamma")[e % width] + form.added_to_gamma;
           return normalized * (form.narrow_gamma ? round_to(type, gamma) : gamma) + beta;
         });
  }

  void momentum() {
    if (is_output("running_mean'") || is_output("running_var'")) complement("momentum");
  }

  void scales() {
    const double d = static_cast<double>(operands_.input("q").shape()[3]);
    const double own = call_.attributes.as<Attention>().scale;
    for (const double other : {1.0, 1.0 / std::sqrt(d), 1.0 / d}) {
      if (other != own) with("scale", other, own);
    }
  }

  /// Query head h reads head h % hkv of k and v.
  void interleaved_heads() {
    const std::int64_t heads = operands_.input("q").shape()[2], of_k = operands_.input("k").shape()[2];
    if (of_k == 1 || of_k == heads) return;
    // In the op's grouped order head h would be at (h % hkv, h / hkv). Heads lie before the last axis.
    const std::int64_t d = operands_.input("q").shape()[3], inner = spec().shape[-1];
    const auto transposed = [=](std::int64_t e, std::int64_t size, std::int64_t columns) {
      const std::int64_t head = e / size % heads;
      return e + (head % columns * (heads / columns) + head / columns - head) * size;
    };
    on(
        "q", "query head h on head h % hkv of k and v",
        [=](HostTensor& q) { read_from(q, [=](std::int64_t e) { return transposed(e, d, heads / of_k); }); },
        [=](std::int64_t e) { return transposed(e, inner, of_k); });
  }

  void flipped_filter() {
    const Shape& shape = operands_.input("filter").shape();  // [k, r, s, c]
    const std::int64_t inner = shape[3], taps = shape[1] * shape[2];
    if (taps == 1) return;
    on("filter", "filter flipped along its height and width", [=](HostTensor& filter) {
      read_from(filter, [=](std::int64_t e) { return e + (taps - 1 - 2 * (e / inner % taps)) * inner; });
    });
  }

  void adamw() {
    constexpr double many = 1e9;  // steps after which 1 - beta^step is 1
    const AdamWCall of = adamw_call(call_);
    for (std::size_t item = 0;; ++item) {
      const auto at = position_of(call_.kind.outputs, call_.attributes, "w'", item);
      if (!at || *at >= operands_.outputs.size()) return;
      if (*at != static_cast<std::size_t>(output_)) continue;
      on("step", "no bias correction", [=](HostTensor& step) { step.set(0, many); });
      on("step", "step counted from 0", [](HostTensor& step) { step.set(0, step.get(0) - 1.0); });
      if (of.adamw.l2 || of.adamw.weight_decay == 0.0) return;
      const std::size_t w = of.first() + item * of.inputs;
      each("weight decay without the learning rate", [=, operands = operands_](std::int64_t e, const Expected& right) {
        const double decay = of.adamw.weight_decay * operands.inputs[w][e];
        return right.value + (operands.input("lr")[0] - 1.0) * decay;
      });
      return;
    }
  }

  Operands operands_;
  const OpCall& call_;
  int output_;
  DType type_;
  std::vector<OtherFormula> formulas_;
};

}  // namespace

std::optional<double> number_of(const OpCall& call, std::string_view attribute) {
  for (const Attribute& one : call.attributes.list()) {
    if (one.name == attribute) return std::get<double>(one.value);
  }
  return {};
}

std::vector<OtherFormula> other_formulas(const Operands& operands, int output) {
  return Formulas(operands, output).all();
}

}  // namespace gpubench

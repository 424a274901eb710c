#include "harness/parity/faults.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/attention_textbook.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/range_data.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"

namespace gpubench {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class Forms {
 public:
  Forms(const OpCall& call, std::span<const HostTensor> inputs, std::span<const HostTensor> right)
      : call_(call), type_(call.math.accumulate), inputs_(inputs), right_(right) {}

  std::vector<UnstableForm> all() {
    const auto is = [this](const auto&... kinds) { return ((call_.kind == kinds) || ...); };
    if (is(layer_norm_forward_kind, residual_norm_forward_kind, batch_norm_forward_kind, batch_norm_relu_forward_kind))
      variance_of_two_sums();
    if (is(layer_norm_backward_kind, residual_norm_backward_kind, batch_norm_backward_kind)) gradient_of_two_sums();
    if (is(softmax_forward_kind)) exponentials("x", {"y"}, {});
    if (is(cross_entropy_forward_kind, cross_entropy_forward_backward_kind)) exponentials("logits", {}, "lse");
    if (is(attention_forward_kind)) exponentials({}, {"o"}, "lse");
    if (is(routing_forward_kind)) routing();
    if (is(gelu_forward_kind, gelu_backward_kind)) {
      const GeluForm form = call_.attributes.as<Gelu>().form;
      tanh_by_exp(form, input("x"), call_.kind == gelu_forward_kind ? "y" : "dx");
    }
    if (is(gemm_kind, gemm_gelu_bias_gradient_kind)) epilogue();
    if (is(silu_forward_kind)) sigmoid_by_exp("x", "y");
    if (is(silu_backward_kind)) sigmoid_by_exp("x", "dx");
    if (is(swiglu_forward_kind)) sigmoid_by_exp("gate", "y");
    if (is(swiglu_backward_kind)) sigmoid_by_exp("gate", "dgate");
    if (is(clip_kind)) scaled_below_the_limit();
    if (is(gradient_norm_kind)) divided_by_the_largest();
    if (is(adamw_kind, clip_adamw_kind)) no_epsilon();
    return std::move(forms_);
  }

 private:
  [[nodiscard]] double rounded(double value) const { return round_to(type_, value); }
  [[nodiscard]] double exp(double x) const { return rounded(std::exp(x)); }

  [[nodiscard]] std::size_t output_at(std::string_view name, std::size_t item = 0) const {
    return *position_of(call_.kind.outputs, call_.attributes, name, item);
  }
  [[nodiscard]] const HostTensor& input(std::string_view name, std::size_t item = 0) const {
    return inputs_[*position_of(call_.kind.inputs, call_.attributes, name, item)];
  }

  void add(std::string_view name, std::size_t output, const std::function<double(std::int64_t, double)>& value) {
    if (forms_.empty() || forms_.back().name != name) forms_.push_back({name, {right_.begin(), right_.end()}});
    HostTensor& left = forms_.back().left[output];
    for (std::int64_t e = 0; e < left.elements(); ++e) left.set(e, value(e, left.get(e)));
  }

  /// Lines are rows, or channels for batch norm.
  [[nodiscard]] bool has_channels() const { return call_.kind.name.starts_with("batch_norm"); }
  [[nodiscard]] std::int64_t lines(const HostTensor& x) const {
    return has_channels() ? x.spec.shape[-1] : x.elements() / x.spec.shape[-1];
  }
  [[nodiscard]] std::int64_t element(const HostTensor& x, std::int64_t line, std::int64_t at) const {
    return has_channels() ? at * x.spec.shape[-1] + line : line * x.spec.shape[-1] + at;
  }

  void variance_of_two_sums() {
    const bool residual = call_.kind == residual_norm_forward_kind;
    const HostTensor& x = residual ? right_[output_at("sum")] : input("x");
    const std::int64_t n = x.elements() / lines(x);
    if (!show_cancellation(x.spec.dtype, n)) return;
    const double epsilon = number_of(call_, "epsilon").value();
    add("variance as E[x^2] - E[x]^2", output_at("rstd"), [&](std::int64_t line, double) {
      double sum = 0.0, squares = 0.0;
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = x.get(element(x, line, i));
        sum = rounded(sum + value);
        squares = rounded(squares + rounded(value * value));
      }
      const double mean = rounded(sum / static_cast<double>(n));
      const double variance = rounded(rounded(squares / static_cast<double>(n)) - rounded(mean * mean));
      return 1.0 / std::sqrt(std::max(variance, 0.0) + epsilon);
    });
  }

  // Few columns: they show the fault and cost little.
  void gradient_of_two_sums() {
    constexpr std::int64_t columns = 16;
    const HostTensor &x = input("x"), &dy = input("dy"), &mean = input("mean"), &rstd = input("rstd");
    const std::int64_t width = x.spec.shape[-1];
    add("gradient of gamma as sum(dy x) - mean sum(dy)", output_at("dgamma"), [&](std::int64_t column, double right) {
      if (column >= columns) return right;
      double products = 0.0, means = 0.0;
      for (std::int64_t e = column; e < x.elements(); e += width) {
        const std::int64_t line = has_channels() ? column : e / width;
        const double scaled = rounded(dy.get(e) * rstd.get(line));
        products = rounded(products + rounded(scaled * x.get(e)));
        means = rounded(means + rounded(scaled * mean.get(line)));
      }
      return rounded(products - means);
    });
  }

  /// Exponentials of the rows of `x`; if empty, of rows with known `lse`, which is close to their maximum.
  void exponentials(std::string_view x, std::initializer_list<std::string_view> weighted, std::string_view lse) {
    const HostTensor& rows = x.empty() ? right_[output_at(lse)] : input(x);
    const std::int64_t width = x.empty() ? 1 : rows.spec.shape[-1];
    std::vector<double> largest;
    for (std::int64_t first = 0; first < rows.elements(); first += width) {
      double most = rows.get(first);
      for (std::int64_t i = 1; i < width; ++i) most = std::max(most, rows.get(first + i));
      largest.push_back(most);
    }
    for (const bool from_zero : {true, false}) {
      const std::string_view name = from_zero ? "maximum that starts at 0" : "exponentials without a maximum";
      // A row's sum is 0 or infinite if its largest exponential is.
      const auto sum = [&](std::int64_t row) {
        const double most = largest[static_cast<std::size_t>(row)];
        return exp(from_zero ? std::min(most, 0.0) : most);
      };
      const auto is_lost = [&](std::int64_t row) { return !(sum(row) > 0.0) || std::isinf(sum(row)); };
      for (const std::string_view output : weighted) {
        const Shape& shape = right_[output_at(output)].spec.shape;
        add(name, output_at(output), [&](std::int64_t e, double right) {
          return is_lost(x.empty() ? lse_row(shape, e) : e / shape[-1]) ? nan : right;
        });
      }
      if (!lse.empty()) {
        add(name, output_at(lse),
            [&](std::int64_t row, double right) { return is_lost(row) ? std::log(sum(row)) : right; });
      }
    }
  }

  void routing() {
    if (call_.attributes.as<Routing>().scores == Routing::Scores::softmax)
      return exponentials("logits", {"weights"}, {});
    const HostTensor &logits = input("logits"), &indices = right_[output_at("indices")];
    const std::int64_t k = indices.spec.shape[-1], experts = logits.spec.shape[-1];
    add("sigmoid as e^x / (1 + e^x)", output_at("weights"), [&](std::int64_t e, double right) {
      const auto expert = static_cast<std::int64_t>(indices.get(e));
      return std::isinf(exp(logits.get(e / k * experts + expert))) ? nan : right;
    });
  }

  void sigmoid_by_exp(std::string_view x, std::string_view output) {
    const HostTensor& of = input(x);
    add("sigmoid as e^x / (1 + e^x)", output_at(output),
        [&](std::int64_t e, double right) { return std::isinf(exp(of.get(e))) ? nan : right; });
  }

  void tanh_by_exp(GeluForm form, const HostTensor& x, std::string_view output) {
    if (form != GeluForm::tanh) return;
    add("tanh as (e^2t - 1) / (e^2t + 1)", output_at(output), [&](std::int64_t e, double right) {
      const double of = x.get(e);
      const double t = std::sqrt(2.0 / std::numbers::pi) * (of + 0.044715 * of * of * of);
      return std::isinf(exp(2.0 * t)) ? nan : right;
    });
  }

  void epilogue() {
    const Gemm& gemm = call_.attributes.as<Gemm>();
    if (gemm.epilogue == Gemm::Epilogue::none && call_.kind == gemm_kind) return;
    const bool forward = gemm.epilogue == Gemm::Epilogue::gelu && call_.kind == gemm_kind;
    tanh_by_exp(gemm.gelu_form, forward ? right_[output_at("z")] : input("pre"), call_.kind == gemm_kind ? "c" : "dz");
  }

  void scaled_below_the_limit() {
    const double limit = call_.attributes.as<Clip>().limit, norm = input("norm").get(0);
    const double factor = limit / (norm + 1e-6);  // as in torch.nn.utils.clip_grad_norm_
    for (std::size_t i = 0; i < right_.size() && factor > 1.0; ++i)
      add("gradients below the limit scaled up to it", i, [=](std::int64_t, double right) { return factor * right; });
    for (std::size_t i = 0; i < right_.size() && norm == limit; ++i)
      add("gradients at the limit not scaled", i, [=](std::int64_t, double right) { return right / factor; });
  }

  void divided_by_the_largest() {
    add("norm of quotients by the largest gradient", 0,
        [](std::int64_t, double right) { return right == 0.0 ? nan : right; });
  }

  void no_epsilon() {
    for (std::size_t item = 0; const auto at = position_of(call_.kind.outputs, call_.attributes, "v'", item); ++item) {
      if (*at >= right_.size()) return;
      const HostTensor& v = right_[*at];
      add("moments divided without epsilon", output_at("w'", item),
          [&](std::int64_t e, double right) { return v.get(e) == 0.0 ? nan : right; });
    }
  }

  const OpCall& call_;
  DType type_;
  std::span<const HostTensor> inputs_, right_;
  std::vector<UnstableForm> forms_;
};

}  // namespace

std::vector<UnstableForm> unstable_forms(const OpCall& call, std::span<const HostTensor> inputs,
                                         std::span<const HostTensor> right) {
  return Forms(call, inputs, right).all();
}

}  // namespace gpubench

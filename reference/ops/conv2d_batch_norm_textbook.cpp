// The product is judged as conv2d_forward's; the norm is judged by the stored product, with the bounds of SumsBeside
// (batch_norm_textbook.cpp).
#include "reference/ops/conv2d_batch_norm.h"

#include <numeric>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/shared_textbook.h"

namespace gpubench {
namespace {

class Parts {
 public:
  explicit Parts(const CallSpecs& op)
      : convolution_(convolution_of(op.call)),
        norm_(batch_norm_of(op.call)),
        norm_inputs_(op.inputs.begin() + 1, op.inputs.end()),
        convolved_{convolution_, op.inputs.first(2), op.outputs.first(1)},
        normalized_{norm_, norm_inputs_, op.outputs.subspan(1)} {
    norm_inputs_[0] = op.outputs[0];
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  [[nodiscard]] const CallSpecs& convolution() const { return convolved_; }
  [[nodiscard]] const CallSpecs& norm() const { return normalized_; }

 private:
  OpCall convolution_, norm_;
  std::vector<TensorSpec> norm_inputs_;
  CallSpecs convolved_, normalized_;
};

class Conv2dBatchNormForwardDefinition : public DefinitionOf<conv2d_batch_norm_forward_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const Parts parts(op);
    return {definition(conv2d_forward_kind).cost(parts.convolution()).flop +
                definition(parts.norm().call.kind).cost(parts.norm()).flop,
            op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const Parts parts(op);
    if (output == 0) return definition(conv2d_forward_kind).units(parts.convolution(), 0);
    return definition(parts.norm().call.kind).units(parts.norm(), output - 1);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Parts parts(op);
    if (output == 0) return definition(conv2d_forward_kind).bound(parts.convolution(), 0);
    return "x is the product as stored: " + batch_norm_of_sums_bound(parts.norm(), output - 1);
  }

  bool reads_written(const OpCall& /*call*/) const override { return true; }

  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int output) const override {
    if (output != 0) return {};
    const Parts parts(op);
    return definition(conv2d_forward_kind).linear_axes(parts.convolution(), 0);
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    const Parts parts(op);
    std::optional<Contraction> sums = definition(conv2d_forward_kind).contraction(parts.convolution());
    if (sums) sums->inputs = 2;
    return sums;
  }

  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const Parts parts(op);
    std::optional<OpProduct> product = definition(conv2d_forward_kind).product(parts.convolution());
    for (std::size_t input = 2; product && input < op.inputs.size(); ++input)
      product->others.push_back({input, 1.0, 1.0});
    return product;
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) return judge_product(operands, wanted, judged);
    const OpCall norm = batch_norm_of(operands.call);
    std::vector<TensorView> inputs(operands.inputs.begin() + 1, operands.inputs.end());
    const auto judge = [&](const TensorView& product) {
      inputs[0] = product;
      judge_batch_norm_of_sums({norm, inputs, operands.outputs.subspan(1)}, operands.outputs[0].dtype, output - 1,
                               wanted, judged);
    };
    if (!operands.written.empty()) return judge(operands.written[0]);
    const Shape& shape = operands.outputs[0].shape;
    std::vector<std::int64_t> all(static_cast<std::size_t>(shape.elements()));
    std::iota(all.begin(), all.end(), 0);
    std::vector<Expected> products(all.size());
    judge_product(operands, all, products);
    std::vector<double> values;
    for (const Expected& one : products) values.push_back(one.value);
    const TensorSpec exact = tensor("product", DType::f64, shape, Role::activation);
    judge(TensorView(exact, reinterpret_cast<const std::byte*>(values.data())));
  }

 private:
  static void judge_product(const Operands& operands, std::span<const std::int64_t> wanted,
                            std::span<Expected> judged) {
    const OpCall convolution = convolution_of(operands.call);
    definition(conv2d_forward_kind)
        .evaluate({convolution, operands.inputs.first(2), operands.outputs.first(1), {}, operands.exact_sums}, 0,
                  wanted, judged);
  }
};

}  // namespace

Definitions conv2d_batch_norm_definitions() { return definitions_of<Conv2dBatchNormForwardDefinition>(); }

}  // namespace gpubench

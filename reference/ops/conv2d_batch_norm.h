// A convolution fused with the batch norm of its product, whose statistics then need no second read. fuse() creates it
// after differentiate(), so it has no derivative.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/ops/batch_norm.h"
#include "reference/ops/conv2d.h"

namespace gpubench {

struct Conv2dBatchNorm {
  Conv2d conv{};
  BatchNorm norm{};
  bool relu = false;
  bool r = false;  ///< requires relu
  static void visit(auto&& attribute) {
    attribute.part(&Conv2dBatchNorm::conv);
    attribute.part(&Conv2dBatchNorm::norm);
    attribute("relu", &Conv2dBatchNorm::relu);
    attribute("r", &Conv2dBatchNorm::r);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return operand == "r" && r; }
};

inline constexpr OpKind conv2d_batch_norm_forward_kind{
    "conv2d_batch_norm_forward", "x filter gamma beta running_mean running_var r?",
    "product y mean rstd running_mean' running_var'", defaults_of<Conv2dBatchNorm>, R"(
A convolution and the batch norm of its product as one op, so that its statistics need not read the product again.
x: [n, h, w, c]
filter: [k, r, s, c / groups]
gamma, beta, running_mean, running_var, mean, rstd: f32 [k] (f64 for f64)
r, product, y: [n, p, q, k]
running_mean', running_var': updates

product = conv2d_forward(x, filter), with its stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups
The other outputs are batch_norm_forward's for the product (epsilon, momentum) or, with relu,
batch_norm_relu_forward's. Statistics may be of the product before or after rounding, and may be made of the sums of
elements and squares: variance = mean of x^2 - mean^2. The product is normalized as stored.)"};

struct Conv2dBatchNormForward {
  ValueId product;
  BatchNormForward norm;
};
/// `r`: given iff attributes.r. Throws ProgramError naming the tensor whose shape or type does not fit.
Conv2dBatchNormForward conv2d_batch_norm_forward(Program& program, const Conv2dBatchNorm& attributes, const Math& math,
                                                 std::string label, ValueId x, ValueId filter,
                                                 const BatchNormChannels& channels, std::optional<ValueId> r = {});

// The two ops that a fused call stands for, and their operands among the fused call's.
[[nodiscard]] OpCall convolution_of(const OpCall& call);
[[nodiscard]] OpCall batch_norm_of(const OpCall& call);

template <class T>
[[nodiscard]] std::vector<T> convolution_operands(const OpCall& call, std::span<const T> all) {
  return {all[0], all[1], all[call.inputs.size()]};
}
/// product, gamma, beta, running_mean, running_var, r, y, mean, rstd, running_mean', running_var'
template <class T>
[[nodiscard]] std::vector<T> batch_norm_operands(const OpCall& call, std::span<const T> all) {
  std::vector<T> some(all.begin() + 1, all.end());
  some.erase(some.begin() + static_cast<std::ptrdiff_t>(call.inputs.size()) - 1);
  some[0] = all[call.inputs.size()];
  return some;
}

}  // namespace gpubench

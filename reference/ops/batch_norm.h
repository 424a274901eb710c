// Batch normalization for training (Ioffe and Szegedy, arXiv 1502.03167): each channel by its mean and variance in the
// batch. Channels are the last axis (NHWC); the other axes together are the n rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind batch_norm_backward_kind{
    "batch_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta", {}, R"(
The gradients of batch_norm_forward, from its saved statistics.
dy, x, dx: [..., c]
gamma, mean, rstd: f32 [c] (f64 for f64)
dgamma, dbeta: [c], gamma's type

dx = gamma rstd (dy - dbeta / n - xhat dgamma / n), xhat = (x - mean) rstd
dgamma = sum over rows of dy xhat, dbeta = sum over rows of dy)"};

struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< 0 to 1
  static void visit(auto&& attribute) {
    attribute("epsilon", &BatchNorm::epsilon);
    attribute("momentum", &BatchNorm::momentum);
  }
};

inline constexpr OpKind batch_norm_forward_kind{"batch_norm_forward", "x gamma beta running_mean running_var",
                                                "y mean rstd running_mean' running_var'", defaults_of<BatchNorm>, R"(
Normalizes every channel by the mean and variance of its elements in the batch, as a training step does.
x, y: [..., c]: channels are the last axis (NHWC), the other axes together are the n rows
gamma, beta, running_mean, running_var, mean, rstd: f32 [c] (f64 for f64)
running_mean', running_var': updates

rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n)
y = gamma (x - mean) rstd + beta
running' = (1 - momentum) running + momentum statistic, as in PyTorch; the running variance is unbiased: n / (n - 1)
times the biased one.

Source: Ioffe and Szegedy, arXiv 1502.03167)"};

struct BatchNormRelu {
  BatchNorm norm;
  bool r = false;
  static void visit(auto&& attribute) {
    attribute.part(&BatchNormRelu::norm);
    attribute("r", &BatchNormRelu::r);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return operand == "r" && r; }
};

inline constexpr OpKind batch_norm_relu_forward_kind{
    "batch_norm_relu_forward", "x gamma beta running_mean running_var r?", "y mean rstd running_mean' running_var'",
    defaults_of<BatchNormRelu>, R"(
batch_norm_forward, the add of a residual behind it where there is one, and the relu_forward of that, fused.
x, y, r: [..., c]
gamma, beta, running_mean, running_var, mean, rstd: f32 [c] (f64 for f64)
running_mean', running_var': updates

y = max(gamma (x - mean) rstd + beta + r, 0); statistics and attributes (epsilon, momentum) as in batch_norm_forward
Intermediate results are neither rounded nor stored. Its derivative is relu_backward, which reads y, and
batch_norm_backward.)"};

struct BatchNormReluBackward {
  bool dy2 = false;  ///< requires dr
  bool dr = false;
  static void visit(auto&& attribute) {
    attribute("dy2", &BatchNormReluBackward::dy2);
    attribute("dr", &BatchNormReluBackward::dr);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return (operand == "dy2" && dy2) || (operand == "dr" && dr);
  }
};

inline constexpr OpKind batch_norm_relu_backward_kind{"batch_norm_relu_backward", "dy x gamma mean rstd y dy2?",
                                                      "dx dgamma dbeta dr?", defaults_of<BatchNormReluBackward>, R"(
batch_norm_backward of the gradient that relu_backward lets through, fused.
dy, x, y, dy2, dx, dr: [..., c]
gamma, mean, rstd: f32 [c] (f64 for f64)
dgamma, dbeta: [c], gamma's type

dr = dy where y > 0, else 0; with dy2, a second gradient of y, dr = dy + dy2 where y > 0, else 0
dx, dgamma and dbeta are batch_norm_backward's for dr. dr, also the residual's gradient, is an output with attribute
dr, and always with dy2; otherwise it is neither rounded nor stored.)"};

struct BatchNormChannels {
  ValueId gamma, beta, running_mean, running_var;
};
struct BatchNormForward {
  ValueId y, mean, rstd, running_mean, running_var;
};
/// Throws ProgramError naming the tensor whose shape or type does not fit; x needs two rows.
BatchNormForward batch_norm_forward(Program& program, const BatchNorm& attributes, const Math& math, std::string label,
                                    ValueId x, const BatchNormChannels& channels);

BatchNormForward batch_norm_relu_forward(Program& program, const BatchNorm& attributes, const Math& math,
                                         std::string label, ValueId x, const BatchNormChannels& channels,
                                         std::optional<ValueId> r = {});

struct BatchNormBackward {
  ValueId dx, dgamma, dbeta;
};
BatchNormBackward batch_norm_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId x,
                                      ValueId gamma, ValueId mean, ValueId rstd);

struct BatchNormReluSaved {
  ValueId x, gamma, mean, rstd, y;
};
/// dx, dgamma, dbeta; also dr if the attributes ask for it. `dy2`: present if the attributes declare it.
std::vector<ValueId> batch_norm_relu_backward(Program& program, const BatchNormReluBackward& attributes,
                                              const Math& math, std::string label, const BatchNormReluSaved& saved,
                                              ValueId dy, std::optional<ValueId> dy2 = {});

}  // namespace gpubench

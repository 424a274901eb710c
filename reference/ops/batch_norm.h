// Batch normalization of a training step (Ioffe and Szegedy, arXiv 1502.03167): every channel by the mean and variance
// of its elements in the batch. Channels are the last axis (NHWC); the other axes together are the n rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// x [..., c], gamma [c], beta [c], running_mean [c], running_var [c] -> y (as x), mean [c], rstd [c], running_mean',
/// running_var' (in place). All but x and y are f32 (f64 for f64). Over the n rows of a channel:
///   rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n); y = gamma (x - mean) rstd + beta
/// and, as PyTorch's momentum has it, with the variance n / (n - 1) times as large, which makes it unbiased:
///   running' = (1 - momentum) running + momentum statistic
inline constexpr OpKind batch_norm_forward_kind{"batch_norm_forward", "x gamma beta running_mean running_var",
                                                "y mean rstd running_mean' running_var'"};
/// dy (as x), x, gamma, mean, rstd -> dx (as x), dgamma [c], dbeta [c] (both in gamma's type)
///   dx = gamma rstd (dy - dbeta / n - xhat dgamma / n), xhat = (x - mean) rstd
inline constexpr OpKind batch_norm_backward_kind{"batch_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta"};

/// batch_norm_forward, with `r` (as x) the add of a residual behind it, and the relu_forward of that, fused:
///   y = max(gamma (x - mean) rstd + beta + r, 0)
/// Nothing in between is rounded or stored. Its derivative is relu_backward, which reads y, and batch_norm_backward.
inline constexpr OpKind batch_norm_relu_forward_kind{
    "batch_norm_relu_forward", "x gamma beta running_mean running_var r?", "y mean rstd running_mean' running_var'"};

/// The backward of that: batch_norm_backward of the gradient that relu_backward lets through,
///   dr = dy where y > 0, else 0; with `dy2`, a second gradient of y, the add of both before it: dr = dy + dy2 there
/// y, dy, dy2 and dr are as x. dr is the residual's gradient too: it is stored where the attribute says so, and with
/// dy2 always; else it is neither rounded nor stored.
inline constexpr OpKind batch_norm_relu_backward_kind{"batch_norm_relu_backward", "dy x gamma mean rstd y dy2?",
                                                      "dx dgamma dbeta dr?"};

/// Of the forward.
struct BatchNorm {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< from 0 to 1
  static void visit(auto&& attribute) {
    attribute("epsilon", &BatchNorm::epsilon);
    attribute("momentum", &BatchNorm::momentum);
  }
};

struct BatchNormRelu {
  BatchNorm norm;
  bool r = false;
  static void visit(auto&& attribute) {
    attribute.part(&BatchNormRelu::norm);
    attribute("r", &BatchNormRelu::r);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return operand == "r" && r; }
};

struct BatchNormReluBackward {
  bool dy2 = false;  ///< needs dr
  bool dr = false;
  static void visit(auto&& attribute) {
    attribute("dy2", &BatchNormReluBackward::dy2);
    attribute("dr", &BatchNormReluBackward::dr);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return (operand == "dy2" && dy2) || (operand == "dr" && dr);
  }
};

/// What belongs to the channels of x.
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

/// What a batch_norm_relu_forward read and wrote.
struct BatchNormReluSaved {
  ValueId x, gamma, mean, rstd, y;
};
/// dx, dgamma, dbeta, and dr where the attributes ask for it; dy2 where they say so.
std::vector<ValueId> batch_norm_relu_backward(Program& program, const BatchNormReluBackward& attributes,
                                              const Math& math, std::string label, const BatchNormReluSaved& saved,
                                              ValueId dy, std::optional<ValueId> dy2 = {});

}  // namespace gpubench

// Normalization over the last axis: layer normalization (Ba, Kiros, Hinton, arXiv 1607.06450) and root mean square
// normalization (Zhang and Sennrich, arXiv 1910.07467), which subtracts no mean and adds no beta.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct Norm {
  double epsilon = 1e-5;
  static void visit(auto&& attribute) { attribute("epsilon", &Norm::epsilon); }
};
using LayerNorm = Norm;
using ResidualNorm = Norm;

struct RmsNorm {
  Norm norm;
  bool rounds_before_gamma = false;  ///< rounds gamma's factor to x's type, as Llama's reference code
  static void visit(auto&& attribute) {
    attribute.part(&RmsNorm::norm);
    attribute("rounds_before_gamma", &RmsNorm::rounds_before_gamma);
  }
};
[[nodiscard]] RmsNorm row_norm_of(const OpCall& call);

inline constexpr OpKind layer_norm_forward_kind{"layer_norm_forward", "x gamma beta", "y mean rstd", defaults_of<Norm>,
                                                R"(
Layer normalization over the last axis.
x, y: [..., n]
gamma, beta: [n]
mean, rstd: f32 [...]

rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n)
y = gamma (x - mean) rstd + beta

Source: Ba, Kiros, Hinton, arXiv 1607.06450)"};

inline constexpr OpKind layer_norm_backward_kind{"layer_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta",
                                                 defaults_of<Norm>, R"(
The gradients of layer_norm_forward, from its saved statistics.
dy, x, dx: [..., n]
gamma: [n]
mean, rstd: f32 [...]
dgamma, dbeta: [n], gamma's type

xhat = (x - mean) rstd, g = gamma dy
dx = rstd (g - mean(g) - xhat mean(g xhat)), means over the row
dgamma = sum over rows of dy xhat, dbeta = sum over rows of dy
epsilon is the forward's, already part of rstd.)"};

inline constexpr OpKind rms_norm_forward_kind{"rms_norm_forward", "x gamma", "y rstd", defaults_of<RmsNorm>, R"(
Root mean square normalization over the last axis, which subtracts no mean and adds no beta.
x, y: [..., n]
gamma: [n]
rstd: f32 [...]

rstd = 1 / sqrt(mean of x^2 + epsilon), y = gamma x rstd
With rounds_before_gamma, x rstd is rounded to x's type before gamma multiplies it, as in Llama's reference code.

Source: Zhang and Sennrich, arXiv 1910.07467)"};

inline constexpr OpKind rms_norm_backward_kind{"rms_norm_backward", "dy x gamma rstd", "dx dgamma",
                                               defaults_of<RmsNorm>, R"(
The gradients of rms_norm_forward, from its saved rstd.
dy, x, dx: [..., n]
gamma: [n]
rstd: f32 [...]
dgamma: [n], gamma's type

xhat = x rstd, g = gamma dy
dx = rstd (g - xhat mean(g xhat)), the mean over the row; dgamma = sum over rows of dy xhat
epsilon is the forward's, already part of rstd. With rounds_before_gamma, g and dgamma's xhat are rounded to x's type,
but not the products that dgamma sums.)"};

inline constexpr OpKind residual_norm_forward_kind{"residual_norm_forward", "x r gamma beta", "sum y mean rstd",
                                                   defaults_of<Norm>, R"(
A residual connection and the layer normalization behind it, in one pass over memory: add and layer_norm_forward fused.
x, r, sum, y: [..., n]
gamma, beta: [n]
mean, rstd: f32 [...]

sum = x + r, rounded once to x's type; y, mean and rstd are layer_norm_forward's (epsilon) for the rounded sum.
The backward is residual_norm_backward if other ops read the sum, else layer_norm_backward.)"};

inline constexpr OpKind residual_norm_backward_kind{"residual_norm_backward", "dy x gamma mean rstd dr",
                                                    "dx dgamma dbeta", defaults_of<Norm>, R"(
layer_norm_backward, and the add of what flows back along the residual connection.
dy, x, dr, dx: [..., n]
gamma: [n]
mean, rstd: f32 [...]
dgamma, dbeta: [n], gamma's type

dx = dr + layer_norm_backward's dx, not rounded before the addition; dgamma, dbeta and epsilon as in that op)"};

struct LayerNormForward {
  ValueId y, mean, rstd;
};
LayerNormForward layer_norm_forward(Program& program, const LayerNorm& attributes, const Math& math, std::string label,
                                    ValueId x, ValueId gamma, ValueId beta);
struct LayerNormBackward {
  ValueId dx, dgamma, dbeta;
};
/// With `dr`, residual_norm_backward.
LayerNormBackward layer_norm_backward(Program& program, const LayerNorm& attributes, const Math& math,
                                      std::string label, ValueId dy, ValueId x, ValueId gamma, ValueId mean,
                                      ValueId rstd, std::optional<ValueId> dr = {});

struct ResidualNormForward {
  ValueId sum, y, mean, rstd;
};
/// Throws ProgramError naming the tensor whose shape or type does not fit.
ResidualNormForward residual_norm_forward(Program& program, const ResidualNorm& attributes, const Math& math,
                                          std::string label, ValueId x, ValueId r, ValueId gamma, ValueId beta);

struct RmsNormForward {
  ValueId y, rstd;
};
RmsNormForward rms_norm_forward(Program& program, const RmsNorm& attributes, const Math& math, std::string label,
                                ValueId x, ValueId gamma);
struct RmsNormBackward {
  ValueId dx, dgamma;
};
RmsNormBackward rms_norm_backward(Program& program, const RmsNorm& attributes, const Math& math, std::string label,
                                  ValueId dy, ValueId x, ValueId gamma, ValueId rstd);

}  // namespace gpubench

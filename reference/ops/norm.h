// Normalization over the last axis: layer normalization (Ba, Kiros, Hinton, arXiv 1607.06450) and root mean square
// normalization (Zhang and Sennrich, arXiv 1910.07467), which subtracts no mean and adds no beta.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// x [..., n], gamma [n], beta [n] -> y (as x), mean [...], rstd [...] (statistics in f32)
///   rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n); y = gamma (x - mean) rstd + beta
inline constexpr OpKind layer_norm_forward_kind{"layer_norm_forward", "x gamma beta", "y mean rstd"};
/// dy (as x), x, gamma, mean, rstd -> dx (as x), dgamma [n], dbeta [n] (both in gamma's type)
inline constexpr OpKind layer_norm_backward_kind{"layer_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta"};
/// x [..., n], gamma [n] -> y (as x), rstd [...] (f32): rstd = 1 / sqrt(mean of x^2 + epsilon), y = gamma x rstd
inline constexpr OpKind rms_norm_forward_kind{"rms_norm_forward", "x gamma", "y rstd"};
/// dy (as x), x, gamma, rstd -> dx (as x), dgamma [n] (in gamma's type)
inline constexpr OpKind rms_norm_backward_kind{"rms_norm_backward", "dy x gamma rstd", "dx dgamma"};

/// A residual connection and the layer normalization behind it, in one pass over memory: add and layer_norm_forward
/// fused. Its backward is residual_norm_backward where the sum is read on, else layer_norm_backward. x [..., n], r (as
/// x), gamma [n], beta [n] -> sum (as x), y (as x), mean [...], rstd [...] (statistics in f32)
///   sum = x + r, rounded once to x's type; y, mean and rstd are layer_norm_forward's of that rounded sum.
inline constexpr OpKind residual_norm_forward_kind{"residual_norm_forward", "x r gamma beta", "sum y mean rstd"};
/// layer_norm_backward, and the add of what flows back along the residual connection: dx = dr (as x) + the norm's,
/// which is not rounded before.
inline constexpr OpKind residual_norm_backward_kind{"residual_norm_backward", "dy x gamma mean rstd dr",
                                                    "dx dgamma dbeta"};

/// Of every op that normalizes.
struct Norm {
  double epsilon = 1e-5;
  static void visit(auto&& attribute) { attribute("epsilon", &Norm::epsilon); }
};
using LayerNorm = Norm;
using RmsNorm = Norm;
using ResidualNorm = Norm;

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

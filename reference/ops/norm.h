// Layer normalization over the last axis. Ba, Kiros, Hinton, arXiv 1607.06450.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// x [..., n], gamma [n], beta [n] -> y (as x), mean [...], rstd [...] (statistics in f32)
///   rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n); y = gamma (x - mean) rstd + beta
inline constexpr OpKind layer_norm_forward_kind{"layer_norm_forward", "x gamma beta", "y mean rstd"};
/// dy (as x), x, gamma, mean, rstd -> dx (as x), dgamma [n], dbeta [n] (both in gamma's type)
inline constexpr OpKind layer_norm_backward_kind{"layer_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta"};

/// A residual connection and the layer normalization behind it, in one pass over memory: add and layer_norm_forward
/// fused. Its backward is layer_norm_backward, which reads the sum. x [..., n], r (as x), gamma [n], beta [n] -> sum
/// (as x), y (as x), mean [...], rstd [...] (statistics in f32)
///   sum = x + r, rounded once to x's type; y, mean and rstd are layer_norm_forward's of that rounded sum.
inline constexpr OpKind residual_norm_forward_kind{"residual_norm_forward", "x r gamma beta", "sum y mean rstd"};

/// Of every op that normalizes.
struct Norm {
  double epsilon = 1e-5;
  static void visit(auto&& attribute) { attribute("epsilon", &Norm::epsilon); }
};
using LayerNorm = Norm;
using ResidualNorm = Norm;

struct LayerNormForward {
  ValueId y, mean, rstd;
};
LayerNormForward layer_norm_forward(Program& program, const LayerNorm& attributes, const Math& math, std::string label,
                                    ValueId x, ValueId gamma, ValueId beta);
struct LayerNormBackward {
  ValueId dx, dgamma, dbeta;
};
LayerNormBackward layer_norm_backward(Program& program, const LayerNorm& attributes, const Math& math,
                                      std::string label, ValueId dy, ValueId x, ValueId gamma, ValueId mean,
                                      ValueId rstd);

struct ResidualNormForward {
  ValueId sum, y, mean, rstd;
};
/// Throws ProgramError naming the tensor whose shape or type does not fit.
ResidualNormForward residual_norm_forward(Program& program, const ResidualNorm& attributes, const Math& math,
                                          std::string label, ValueId x, ValueId r, ValueId gamma, ValueId beta);

}  // namespace gpubench

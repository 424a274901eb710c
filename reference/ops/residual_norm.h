// A residual connection and the layer normalization behind it, in one pass over memory: add and layer_norm_forward
// (elementwise.h, layer_norm.h) fused. Its backward is layer_norm_backward, which reads the sum.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind residual_norm_forward_kind{"residual_norm_forward", "x r gamma beta", "sum y mean rstd"};

/// x [..., n], r (as x), gamma [n], beta [n] -> sum (as x), y (as x), mean [...], rstd [...] (statistics in f32)
///   sum = x + r, rounded once to x's type; y, mean and rstd are layer_norm_forward's of that rounded sum.
/// The attributes are those of the norm.
struct ResidualNorm {
  double epsilon = 1e-5;
  static void visit(auto&& attribute) { attribute("epsilon", &ResidualNorm::epsilon); }
};

struct ResidualNormForward {
  ValueId sum, y, mean, rstd;
};
/// Throws ProgramError naming the tensor whose shape or type does not fit.
ResidualNormForward residual_norm_forward(Program& program, const ResidualNorm& attributes, const Math& math,
                                          std::string label, ValueId x, ValueId r, ValueId gamma, ValueId beta);

}  // namespace gpubench

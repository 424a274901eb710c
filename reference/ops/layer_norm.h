// Layer normalization over the last axis. Ba, Kiros, Hinton, arXiv 1607.06450.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind layer_norm_forward_kind{"layer_norm_forward", "x gamma beta", "y mean rstd"};
inline constexpr OpKind layer_norm_backward_kind{"layer_norm_backward", "dy x gamma mean rstd", "dx dgamma dbeta"};

/// forward: x [..., n], gamma [n], beta [n] -> y (as x), mean [...], rstd [...] (statistics in f32)
///   rstd = 1 / sqrt(variance + epsilon), variance biased (divided by n); y = gamma (x - mean) rstd + beta
/// backward: dy (as x), x, gamma, mean, rstd -> dx (as x), dgamma [n], dbeta [n] (both in gamma's type)
struct LayerNorm {
  double epsilon = 1e-5;
  static void visit(auto&& attribute) { attribute("epsilon", &LayerNorm::epsilon); }
};

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

}  // namespace gpubench

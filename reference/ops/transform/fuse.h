// Replaces chains of ops by fused ops that a backend claims. Tensors keep names, types and storages, except for sums
// taken in place of a summand. Tensors that no other op reads are not stored.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/op_kind.h"
#include "harness/core/program.h"

namespace gpubench {

struct Fused {
  /// Values and storages as in the original, without those that only fused ops produced and read.
  Program program;
  /// "residual1+ln2 = residual_norm_forward"; with " (gain not yet measured)" for an unmeasured claim.
  std::vector<std::string> rewrites;
};

/// Applies every rewrite whose fused op is among `claims`:
///   residual_norm_forward   add, and the first layer_norm_forward of its sum, which is kept.
///   cross_entropy_forward_backward   cross_entropy_forward, and the cross_entropy_backward with its lse; in place if
///       that is, and if nothing else reads the logits in between.
///   gemm_gelu_bias_gradient   gemm, the gelu_backward of its product (or a gemm with that epilogue), and the first
///       column_sum of its result. The product is not stored, so nothing else may read it.
///   gemm_weight_bias_gradient   gemm, and the first column_sum of a factor whose rows run along k.
///   clip_adamw   clip, and the adamws that are the only readers of its results, which are not stored: one op each.
///   conv2d_batch_norm_forward   conv2d_forward, and the first batch_norm_forward of its product, with the ops that
///       batch_norm_relu_forward includes. The product is kept.
///   batch_norm_relu_forward   batch_norm_forward, and the relu_forward that is the only reader of y, or of the add
///       that is the only reader of y.
///   batch_norm_relu_backward   relu_backward, and the first batch_norm_backward of its dx, which is kept if others
///       read it; also the add that makes dy, if nothing else reads that.
///   residual_norm_backward   layer_norm_backward, and the add that is the only reader of dx.
///   embedding_backward_add   embedding_backward, and the add that is the only reader of it and of an earlier gradient,
///       which becomes the sum in place.
/// Both bias gradients may fit a column_sum: the former gets it. Ops stay separate if tensors are not plain (views,
/// other layouts, several types) or another op is in the way. `kept`: by op, those to leave alone; empty: none. Throws
/// ProgramError for a claim without a rewrite.
[[nodiscard]] Fused fuse(const Program& program, std::span<const FusionClaim> claims, std::vector<bool> kept = {});

/// `ops`, ascending, are replaced at the place of the first by `fused`: one op, or several that share a predecessor. No
/// other op reads outputs that `fused` lacks.
struct Rewrite {
  std::vector<int> ops;
  std::vector<OpCall> fused;
  std::map<ValueId, ValueId> updates{};  ///< outputs that become newer versions of tensors which nothing else reads
};

/// A program during rewriting, and by op the ops that it depends on.
struct Chain {
  const Program& program;
  std::vector<std::vector<int>> dependencies;
};

struct FusionRule {
  OpKind kind;
  std::optional<Rewrite> (*find)(const Chain& chain, int index);
};

/// If two rules fit an op, the earlier one applies: a column sum of dz joins the op that makes dz
/// (gemm_gelu_bias_gradient), not one that reads it (gemm_weight_bias_gradient), and a batch norm its convolution.
[[nodiscard]] std::span<const FusionRule> fusion_rules();

}  // namespace gpubench

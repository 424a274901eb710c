// Rewrites chains of ops into the fused ops that a backend claims. The list of rewrites is fixed and short; each is one
// function in fusion_rules.cpp. Tensors keep their names, types and storages (except for a sum that is taken in place
// of a summand): a rewrite changes which op produces them, and saves reading back what can stay in the processor. What
// no other op reads is not stored at all.
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
  /// With the values and storages of the original, in their order, but for those that only fused ops produced and read.
  Program program;
  /// The rewrites: "residual1+ln2 = residual_norm_forward"; with " (gain not yet measured)" for an unmeasured claim.
  std::vector<std::string> rewrites;
};

/// The program with every rewrite whose fused op is among `claims` applied wherever it fits:
///   residual_norm_forward   add, and the first layer_norm_forward of its sum. Others may read the sum: it stays.
///   cross_entropy_forward_backward   cross_entropy_forward, and the cross_entropy_backward with its lse; in
///       place where that is, and nothing else reads the logits between the two.
///   gemm_gelu_bias_gradient   gemm, the gelu_backward of its product (or a gemm with that as its epilogue), and the
///       first column_sum of its result. The product itself is not stored: nothing else may read it.
///   gemm_weight_bias_gradient   gemm, and the first column_sum of a factor whose rows run along k.
///   clip_adamw   clip, and the adamws that alone read what it clipped, which is not stored: one for each.
///   conv2d_batch_norm_forward   conv2d_forward, and the first batch_norm_forward that reads its product, with the ops
///       that batch_norm_relu_forward would take along. Others may read the product: it stays.
///   batch_norm_relu_forward   batch_norm_forward, and the relu_forward that alone reads its y, or that alone reads the
///       add which does.
///   batch_norm_relu_backward   relu_backward, and the first batch_norm_backward that reads its dx, which stays where
///       others read it; and the add before, if that alone makes dy.
///   residual_norm_backward   layer_norm_backward, and the add that alone reads its dx.
///   embedding_backward_add   embedding_backward, and the add that alone reads it and an earlier gradient, which
///       becomes the sum in place.
/// A column_sum that both bias gradients could take goes to the former.
/// Where the tensors are not plain (views, other layouts, several types) or an op between the two is in the way, the
/// program keeps its two ops. A claim that names no known rewrite throws ProgramError, so that none is silently
/// ignored.
/// `kept`: by op, those that stay as they are; empty: none.
[[nodiscard]] Fused fuse(const Program& program, std::span<const FusionClaim> claims, std::vector<bool> kept = {});

// The rules of fuse(): each finds ops that one fused op can replace.

/// Ops of a program, ascending, and what runs instead at the place of the first: one op, or one each for several that
/// share their predecessor. Outputs of theirs that no fused op has are read by no other op.
struct Rewrite {
  std::vector<int> ops;
  std::vector<OpCall> fused;
  std::map<ValueId, ValueId> updates{};  ///< outputs that become newer versions of tensors which nothing else reads
};

/// A program while it is rewritten, and which of its ops wait for which.
struct Chain {
  const Program& program;
  std::vector<std::vector<int>> dependencies;
};

/// The fused op, and how to find its place from one of the ops that it replaces.
struct FusionRule {
  OpKind kind;
  std::optional<Rewrite> (*find)(const Chain& chain, int index);
};

/// Every rule. Where two want the same op, the earlier one takes it: a column sum of dz goes with the
/// op that makes dz (gemm_gelu_bias_gradient), not with one that reads it (gemm_weight_bias_gradient), and a batch norm
/// with the convolution before it.
[[nodiscard]] std::span<const FusionRule> fusion_rules();

}  // namespace gpubench

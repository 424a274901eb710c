// What fuse() looks for: each rule finds some ops that one fused op can stand for.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Ops of a program, ascending, and what to run in the place of the first: one op, or one each for several that share
/// what goes before them. Outputs of theirs that no fused op has are read by none but them.
struct Rewrite {
  std::vector<int> ops;
  std::vector<OpCall> fused;
};

/// A program while it is rewritten: its ops as they are now, and which wait for which.
struct Chain {
  const Program& program;
  std::vector<std::vector<int>> dependencies;
};

/// The op that is put in, and how it is found from one of the ops that it stands for.
struct FusionRule {
  OpKind kind;
  std::optional<Rewrite> (*find)(const Chain& chain, int index);
};

/// Every rule there is. Where two want the same op, the one that comes first has it: a column sum of dz goes with the
/// op that makes dz (gemm_gelu_bias_gradient), not with one that reads it (gemm_weight_bias_gradient).
[[nodiscard]] std::span<const FusionRule> fusion_rules();

}  // namespace gpubench

// Recomputation: a training step that keeps less of its forward, and repeats that part when the backward needs it. Chen
// et al., "Training deep nets with sublinear memory cost", 2016 (arXiv 1604.06174); of attention only: Korthikanti et
// al., "Reducing activation recomputation in large transformer models", 2022 (arXiv 2205.05198).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

struct Recompute {
  std::string segment;  ///< ops of one segment are repeated together, from results of earlier segments
  bool again = false;   ///< whether the op is repeated; else its results are kept
};
using RecomputeRule = std::function<Recompute(const OpCall&)>;

/// Segments of `n` consecutive blocks: numbered layers ("block3.qkv", see layer_of()). Their ops for which `again`
/// holds are repeated; other layers are kept.
[[nodiscard]] RecomputeRule every_nth_block(int n, bool (*again)(const OpCall&));

struct RecomputePolicy {
  std::string_view name;
  std::string_view what;
  RecomputeRule rule;  ///< empty: no recomputation
};
/// "none", "attention" (selective: Korthikanti), "pointwise" (norms, activations and other non-products), "block".
[[nodiscard]] std::span<const RecomputePolicy> recompute_policies();

/// Repeats each segment right before the first backward op that reads results it does not keep. From there on the
/// backward reads the new values, so that the old ones' memory is free in between. Kept are values that other segments
/// read, and results of ops that update or run on several ranks. Only needed ops are repeated ("block0.qkv.again").
///
/// The forward is all that depends on no gradient. Values keep their ids and their bits. Throws ProgramError if an
/// input of a repeated op has been overwritten.
[[nodiscard]] Program checkpoint(const Program& step, const RecomputeRule& rule);

}  // namespace gpubench

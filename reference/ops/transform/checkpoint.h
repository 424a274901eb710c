// Recomputation: a training step that keeps less of its forward for the backward, and runs that part again when the
// backward needs it. Chen et al., "Training deep nets with sublinear memory cost", 2016 (arXiv 1604.06174); of
// attention alone: Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022 (arXiv
// 2205.05198).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

/// What to do with an op of the forward.
struct Recompute {
  std::string segment;  ///< ops of one segment run again together, from what earlier segments left
  bool again = false;   ///< else what the op makes is kept
};
using RecomputeRule = std::function<Recompute(const OpCall&)>;

/// Segments of `n` blocks: layers with a number ("block3.qkv", see layer_of()), of which those that follow each other
/// go together. Of these the ops for which `again` holds run again; other layers are kept.
[[nodiscard]] RecomputeRule every_nth_block(int n, bool (*again)(const OpCall&));

struct RecomputePolicy {
  std::string_view name;
  std::string_view what;  ///< runs again
  RecomputeRule rule;     ///< empty: nothing does
};
/// "none", "attention" (selective: Korthikanti), "pointwise" (norms and activations, all that is no product), "block".
[[nodiscard]] std::span<const RecomputePolicy> recompute_policies();

/// The step with the segments of the rule run again, each right before the first op of the backward that reads what it
/// does not keep: from there on the backward reads the new values, so that the memory of the old ones is free in
/// between. What another segment reads is kept, and what an op makes that updates something or runs on several ranks.
/// Only ops that are needed run again ("block0.qkv.again").
///
/// The forward is what depends on no gradient. Values keep their ids, and are bit for bit those of `step`. Throws
/// ProgramError where something that an op needs again has been overwritten by then.
[[nodiscard]] Program checkpoint(const Program& step, const RecomputeRule& rule);

}  // namespace gpubench

// A training step over several micro-batches: forward and backward of each in turn, their gradients added up, and the
// optimizer once. The memory of one micro-batch's activations serves the next.
#pragma once

#include <span>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"

namespace gpubench {

struct Accumulation {
  int micro_batches = 1;
  Reduction reduction = Reduction::average;  ///< average where the loss is a mean over the batch, else sum
  DType sums = DType::f32;                   ///< the type in which gradients are added up
  Math math = {};                            ///< of the sums
};

struct Accumulated {
  Program program;
  std::vector<ValueId> gradients;  ///< the sums, which later ops read in the place of the step's gradients
};

/// What the step's `gradients` do not flow into (forward, backward) is repeated for each micro-batch ("qkv.micro1"),
/// right after each gradient its addition to the sum; what they flow into (norm, clip, optimizer) comes once, on the
/// sums. What a micro-batch leaves in a parameter or state (running averages) the next one finds.
///
/// Sources placed as shards (Placement::shard(0)) are the batch: they become `micro_batches` times as long, of which
/// each has its part. For one micro-batch the result is the step itself. Throws ProgramError for a gradient that no op
/// produces or that is made of another, for a batch that is not row-major, and where the optimizer would read part of a
/// gradient under another name, and as mask_offsets().
[[nodiscard]] Accumulated accumulate(const Program& step, const Accumulation& options,
                                     std::span<const ValueId> gradients);

}  // namespace gpubench

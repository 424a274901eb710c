// A training step's batch in parts: micro-batches one after the other, ranks with a part of the batch or of each
// sequence, and the mean loss of the whole.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

// A training step over several micro-batches: forward and backward of each in turn, their gradients added up, and the
// optimizer once. The memory of one micro-batch's activations serves the next.

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

// A training step on several ranks, each with its own part of the batch. Li et al., "PyTorch Distributed: experiences
// on accelerating data parallel training", VLDB 2020: gradients are reduced in buckets, as they become known.

struct DataParallel {
  std::string axis = "dp";                       ///< of the mesh
  int ranks = 1;                                 ///< the replicas of the step
  Reduction reduction = Reduction::average;      ///< average where the loss is a mean over the batch, else sum
  std::int64_t bucket_bytes = 25 * 1000 * 1000;  ///< a bucket is reduced once it holds at least this much
  Math math = {};                                ///< of the reductions
  std::vector<int> held = {};                    ///< the ranks that the result holds; empty: all that the step has
};

/// `step` once for each rank (tensors and ops are named "x@1"), with its `gradients` reduced over the ranks in place
/// before anything but the backward reads them. Buckets are filled in the order in which gradients are produced, which
/// is the reverse of the layers', and reduced right after the op that completes them, so that data flow alone lets the
/// reduction run beside the rest of the backward.
///
/// A step of several ranks has a mesh; the result's has axis "dp" in front, and rank r of the step is rank
/// d * step.mesh().ranks() + r of replica d. Each rank's gradients are reduced within its group along dp; the
/// step's own collectives ("x@dp1") stay within their replica.
///
/// Sources of the step that are placed as shards (Placement::shard) become the ranks' parts of one tensor over all of
/// them: the step's own batch is what one rank has. Others are the same on every rank. For one rank the result is the
/// step itself. Throws ProgramError for a gradient that no op of the step produces, for a held rank that the step
/// lacks, and where an op after a gradient's reduction would read part of it under another name, and as mask_offsets().
[[nodiscard]] Program data_parallel(const Program& step, const DataParallel& options,
                                    std::span<const ValueId> gradients);
/// The same, with the gradients of all ranks as their ops make them.
[[nodiscard]] PartitionedStep replicated_step(const Program& step, const DataParallel& options,
                                              std::span<const ValueId> gradients);

// The mean loss of a batch that is on several ranks, or in several micro-batches, and of which not all labels count:
// not the mean of the parts' means, since some parts have more labels that count than others. (Averaging means over
// micro-batches is what several frameworks did until 2024: Unsloth, "Bugs in gradient accumulation".)

/// `step`, on all ranks that share it, with each loss that ignores labels divided by how many count in a part on
/// average, instead of how many do in its own: so that the average over the parts, which other transforms take of
/// losses and of gradients, is that of the batch. Parts are those of the labels: what the ranks that share nothing else
/// have, and each of a rank's micro-batches. Counts are reduced before anything else. A part in which no label counts
/// loses 0, and adds nothing.
///
/// Comes after all other transforms. `wide`: the type of losses. A step without such losses, and one whose batch is in
/// one part, stays as it is. Throws ProgramError for labels that are no equal parts of a source, as many on every rank.
[[nodiscard]] Program weigh_losses(const Program& step, const Math& math, DType wide);

// A training step on several ranks that share each sequence: rank r has the r-th part of its tokens. Only attention
// looks beyond them; its keys and values are gathered from all ranks, as in Grattafiori et al., "The Llama 3 herd of
// models", arXiv 2407.21783, 3.3.2; or passed on from rank to rank, as in Liu et al., "Ring Attention with Blockwise
// Transformers", arXiv 2310.01889, so that a rank attends to some while the next are on their way.

struct ContextParallel {
  int ranks = 1;
  std::int64_t tokens = 0;  ///< of a sequence that a rank has
  bool ring = false;        ///< keys and values are passed on
  /// Sources with a row for each token that is no part of the batch: tables of positions.
  std::set<std::string, std::less<>> by_position = {};
  Reduction reduction = Reduction::average;  ///< of gradients, as DataParallel's
  Math math = {};                            ///< of the reductions
};

/// `step`, whose sequences are the part that one rank has, on the ranks of a mesh with the axis "cp" in front of the
/// step's own. All is as in data_parallel(), but that the ranks' batches are parts of the same sequences. A rank's
/// queries meet the keys of the ranks before it and its own where attention is causal, else of all; their gradients are
/// addends, reduced and scattered. So the last rank has the most to do.
///
/// In a ring, a rank attends to one rank's keys after another's and joins what it gets; gradients of keys and values go
/// round with them, summed up on their way, and one step further, home.
///
/// For one rank the result is the step itself. Throws ProgramError as data_parallel(), for attention
/// within documents, or in a ring within a window, and for a batch that is no whole number of sequences.
[[nodiscard]] PartitionedStep context_parallel(const Program& step, const ContextParallel& options,
                                               std::span<const ValueId> gradients);

}  // namespace gpubench

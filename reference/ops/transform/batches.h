// Transforms that divide a training step's batch: over micro-batches, over ranks by sequences or by tokens, and the
// mean loss of the whole batch.
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

// Gradient accumulation: forward and backward per micro-batch, gradients summed, one optimizer step. Micro-batches
// reuse the memory of activations.

struct Accumulation {
  int micro_batches = 1;
  Reduction reduction = Reduction::average;  ///< average if the loss is a mean over the batch, else sum
  DType sums = DType::f32;                   ///< the type in which gradients are added up
  Math math = {};
};

struct Accumulated {
  Program program;
  std::vector<ValueId> gradients;
};

/// Repeats forward and backward per micro-batch ("qkv.micro1"), adding each gradient right after it is made. Ops that
/// depend on `gradients` (norm, clip, optimizer) come once, on the sums. Updates of parameters and state (running
/// averages) carry over to the next micro-batch.
///
/// Sources placed as shards (Placement::shard(0)) are the batch: they become `micro_batches` times as long. One
/// micro-batch: the step itself. Throws ProgramError for a gradient without an op or made of another gradient, for a
/// batch that is not row-major, if the optimizer reads part of a gradient by another name, and as mask_offsets().
[[nodiscard]] Accumulated accumulate(const Program& step, const Accumulation& options,
                                     std::span<const ValueId> gradients);

// Data parallelism. Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020:
// gradients are reduced in buckets as they become available.

struct DataParallel {
  std::string axis = "dp";
  int ranks = 1;
  Reduction reduction = Reduction::average;      ///< average if the loss is a mean over the batch, else sum
  std::int64_t bucket_bytes = 25 * 1000 * 1000;  ///< a bucket is reduced once it holds at least this much
  Math math = {};
  std::vector<int> held = {};  ///< ranks that the result holds; empty: those that the step has
};

/// Repeats `step` for each rank (names "x@1"), and reduces its `gradients` over the ranks in place before any op but
/// the backward reads them. Buckets fill in the order in which gradients are produced, the reverse of the layers', and
/// are reduced right after the op that completes them, so that reductions can overlap the rest of the backward.
///
/// The result's mesh is the step's with axis "dp" in front: rank r of the step is rank d * step.mesh().ranks() + r of
/// replica d. Gradients are reduced in groups along dp; the step's collectives ("x@dp1") stay within their replica.
///
/// Sources placed as shards (Placement::shard) become the ranks' parts of one tensor, so the step's batch is one
/// rank's; other sources are equal on all ranks. One rank: the step itself. Throws ProgramError for a gradient without
/// an op, for a held rank that the step lacks, if an op after a gradient's reduction reads part of it by another name,
/// and as mask_offsets().
[[nodiscard]] Program data_parallel(const Program& step, const DataParallel& options,
                                    std::span<const ValueId> gradients);
/// data_parallel(), with the gradients of all ranks before their reduction.
[[nodiscard]] PartitionedStep replicated_step(const Program& step, const DataParallel& options,
                                              std::span<const ValueId> gradients);

// The mean loss of a batch in parts (ranks, micro-batches) with ignored labels. It is not the mean of the parts' means,
// which several frameworks computed until 2024 (Unsloth, "Bugs in gradient accumulation"), as parts differ in the
// number of labels that count.

/// Divides each loss that ignores labels by the average count of labels per part, not by the count of that part. The
/// average over parts that other transforms take, of losses and gradients, is then that of the batch. Parts are the
/// micro-batches of each group of ranks with the same labels. Counts are reduced first. A part without counted labels
/// has loss 0.
///
/// Apply after all other transforms. `wide`: the type of losses. Steps without such losses, or with a batch in one
/// part, stay unchanged. Throws ProgramError if labels are not equal parts of a source, equally many on every rank.
[[nodiscard]] Program weigh_losses(const Program& step, const Math& math, DType wide);

// Context parallelism: rank r has the r-th part of each sequence's tokens. Attention gathers keys and values from all
// ranks (Grattafiori et al., "The Llama 3 herd of models", arXiv 2407.21783, 3.3.2), or passes them on in a ring (Liu
// et al., "Ring Attention with Blockwise Transformers", arXiv 2310.01889), which overlaps transfers with attention.

struct ContextParallel {
  int ranks = 1;
  std::int64_t tokens = 0;  ///< tokens of a sequence per rank
  bool ring = false;        ///< keys and values are passed on instead of gathered
  /// Sources with a row per token that are not part of the batch: tables of positions.
  std::set<std::string, std::less<>> by_position = {};
  Reduction reduction = Reduction::average;  ///< of gradients, as in DataParallel
  Math math = {};
};

/// `step`, with sequences of one rank's part, on a mesh with axis "cp" in front of the step's axes. As data_parallel(),
/// except that the ranks' batches are parts of the same sequences. A rank's queries meet the keys of all ranks, if
/// causal only of those up to its own, so the last rank has the most work. Gradients of keys and values are addends,
/// reduced and scattered.
///
/// In a ring, a rank attends to one rank's keys at a time and merges the results. Gradients of keys and values travel
/// with them, are summed on the way, and take one step more to return.
///
/// One rank: the step itself. Throws ProgramError as data_parallel(), for attention within documents, in a ring also
/// within a window, and for a batch that is not a whole number of sequences.
[[nodiscard]] PartitionedStep context_parallel(const Program& step, const ContextParallel& options,
                                               std::span<const ValueId> gradients);

}  // namespace gpubench

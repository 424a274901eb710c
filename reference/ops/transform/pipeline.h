// A training step whose layers are shared out over several ranks, the stages of a pipeline, through which micro-batches
// pass one behind the other. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", arXiv 2104.04473: one forward, one backward (1F1B), and the same with several parts of the model on
// each stage (interleaved).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

struct PipelineParallel {
  int stages = 1;
  int parts = 1;   ///< of the model on each stage: part c of all is on stage c mod stages
  Math math = {};  ///< of what all stages need: the gradients' norm
};

/// What a stage does in one go: a micro-batch's forward or backward through a part of the model.
struct PipelineUnit {
  int micro = 0, part = 0;
  bool backward = false;
  friend auto operator<=>(const PipelineUnit&, const PipelineUnit&) = default;
};
/// All of them, in the order in which they would begin where a backward takes as long as two forwards: first as many
/// forwards as the first of them needs to come back, then one backward after one forward.
[[nodiscard]] std::vector<PipelineUnit> pipeline_order(const PipelineParallel& options, int micro_batches);

/// `step` on the ranks of a mesh with the axis "pp" in front of the step's own: rank r of the step is rank s ranks + r
/// of stage s. Blocks (layers with a number, "block3.qkv") are shared out in equal numbers, as far as they can be; what
/// comes before them is on the first stage, what comes behind them on the last. Micro-batches are those of
/// accumulate().
///
/// What an op reads that another stage has is sent right behind the op that makes it, or before all others where it is
/// a weight (that of tied embeddings): a broadcast among those that have and need it. Optimizers and clips take each
/// stage's own parameters, the norm is that of all stages, scalars and tables are on every stage that reads them.
///
/// For one stage the result is the step itself. Throws ProgramError for fewer blocks than parts, and where a packed
/// tensor that is made in parts would have to be sent.
[[nodiscard]] PartitionedStep pipeline_parallel(const Program& step, const PipelineParallel& options,
                                                std::span<const ValueId> gradients);

// Which stage of a pipeline has each tensor and runs each op of a step, and when (pipeline.h).

class PipelinePlan {
 public:
  /// Both must outlive it. Throws ProgramError as pipeline_parallel() does.
  PipelinePlan(const Program& step, const PipelineParallel& options);

  enum class Run {
    on_stage,    ///< of the part that its layer is in
    everywhere,  ///< on every stage, from what every stage has
    by_item      ///< on every stage, on its own of a list of parameters
  };
  [[nodiscard]] Run run(int op) const { return runs_[static_cast<std::size_t>(op)]; }
  /// Of an op that one stage runs.
  [[nodiscard]] int stage(int op) const { return *parts_[static_cast<std::size_t>(op)] % options_.stages; }
  /// Of a value: none where every stage has it, or may.
  [[nodiscard]] std::optional<int> stage_of(ValueId id) const;
  /// Of the inputs, or the outputs, of an op that is run by item: none for what every stage has.
  [[nodiscard]] std::vector<std::optional<int>> item_stages(const OpCall& call, bool outputs) const;
  /// The stages that need a value of another one.
  [[nodiscard]] std::vector<int> sent_to(ValueId id) const;
  /// The ops, set-up first, in an order that keeps the stages busy.
  [[nodiscard]] std::vector<int> order() const;

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }
  void share_layers();
  [[nodiscard]] int part_of_layer(const OpCall& call) const;
  void place(int op);
  void place_items(const OpCall& call);
  void need(ValueId id, int part);
  [[nodiscard]] bool is_everywhere(ValueId source) const;
  void set(ValueId id, std::optional<int> part);

  const Program& step_;
  const PipelineParallel& options_;
  int all_parts_;
  int blocks_ = 0;
  std::map<std::string, int, std::less<>> part_of_layer_;  // those without a number
  std::vector<Run> runs_;
  std::vector<std::optional<int>> parts_;        // by op
  std::vector<std::optional<int>> value_parts_;  // by value; none: every stage has it
  std::vector<bool> known_;                      // likewise
  std::map<ValueId, std::set<int>> sent_;
};

}  // namespace gpubench

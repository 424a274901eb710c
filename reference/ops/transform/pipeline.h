// Pipeline parallelism: ranks (stages) share the layers, and micro-batches pass through them. Narayanan et al.,
// "Efficient large-scale language model training on GPU clusters using Megatron-LM", arXiv 2104.04473: one forward, one
// backward (1F1B), also with several parts of the model per stage (interleaved).
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
  int parts = 1;   ///< per stage: part c is on stage c mod stages
  Math math = {};  ///< of work for all stages: the gradients' norm
};

/// A stage's unit of work: a micro-batch's forward or backward through a part of the model.
struct PipelineUnit {
  int micro = 0, part = 0;
  bool backward = false;
  friend auto operator<=>(const PipelineUnit&, const PipelineUnit&) = default;
};
/// All units by start time if a backward takes as long as two forwards: first as many forwards as precede the first
/// backward, then backwards and forwards in turn.
[[nodiscard]] std::vector<PipelineUnit> pipeline_order(const PipelineParallel& options, int micro_batches);

/// `step` on a mesh with axis "pp" in front of the step's axes: rank r of the step is rank s ranks + r of stage s.
/// Blocks (numbered layers, "block3.qkv") are distributed evenly; earlier layers are on the first stage, later ones on
/// the last. Micro-batches are those of accumulate().
///
/// A value needed on other stages is broadcast to them right after its op; weights (of tied embeddings) before all ops.
/// Optimizers and clips take each stage's parameters, the norm is that of all stages, and scalars and tables are on
/// every stage that reads them.
///
/// One stage: the step itself. Throws ProgramError for fewer blocks than parts, and if a packed tensor made in parts
/// would have to be sent.
[[nodiscard]] PartitionedStep pipeline_parallel(const Program& step, const PipelineParallel& options,
                                                std::span<const ValueId> gradients);

class PipelinePlan {
 public:
  /// Step and options must outlive it. Throws ProgramError as pipeline_parallel() does.
  PipelinePlan(const Program& step, const PipelineParallel& options);

  enum class Run {
    on_stage,    ///< on the stage of its layer
    everywhere,  ///< on every stage, from operands that all have
    by_item      ///< on every stage, with its items of a list of parameters
  };
  [[nodiscard]] Run run(int op) const { return runs_[static_cast<std::size_t>(op)]; }
  [[nodiscard]] int stage(int op) const { return *parts_[static_cast<std::size_t>(op)] % options_.stages; }
  /// None if every stage has the value, or may have it.
  [[nodiscard]] std::optional<int> stage_of(ValueId id) const;
  /// By input (or output) of an op with Run::by_item: its stage; none for operands that every stage has.
  [[nodiscard]] std::vector<std::optional<int>> item_stages(const OpCall& call, bool outputs) const;
  /// Stages other than its own that need the value.
  [[nodiscard]] std::vector<int> sent_to(ValueId id) const;
  /// All ops, set-up first, in an order that keeps the stages busy.
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
  std::map<std::string, int, std::less<>> part_of_layer_;  // unnumbered layers
  std::vector<Run> runs_;
  std::vector<std::optional<int>> parts_;        // by op
  std::vector<std::optional<int>> value_parts_;  // by value; none: every stage has it
  std::vector<bool> known_;                      // by value
  std::map<ValueId, std::set<int>> sent_;
};

}  // namespace gpubench

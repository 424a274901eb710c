// Which stage of a pipeline has each tensor and runs each op of a step, and when (pipeline.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/transform/pipeline.h"

namespace gpubench {

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

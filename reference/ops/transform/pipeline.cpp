#include "reference/ops/transform/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/core/error.h"
#include "reference/ops/collective.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {
namespace {

class Stages {
 public:
  Stages(const Program& step, const PipelineParallel& options)
      : step_(step),
        options_(options),
        pp_(step, "pp", options.stages),
        plan_(step, options),
        program_(pp_.mesh()),
        now_(static_cast<std::size_t>(options.stages), std::vector<ValueId>(step.values().size())) {
    bool begun = false;
    for (const int op : plan_.order()) {
      const OpCall& call = step.op(op);
      if (!begun && call.phase == Phase::timed) {
        send_available();
        begun = true;
      }
      program_.begin(call.phase);
      append(op);
    }
    program_.begin(Phase::timed);
  }

  [[nodiscard]] PartitionedStep take(std::span<const ValueId> gradients) && {
    std::vector<ValueId> there;
    for (const ValueId id : gradients) there.push_back(on(plan_.stage_of(id).value_or(0), id));
    return {std::move(program_), std::move(there)};
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  ValueId on(int stage, ValueId id) {
    ValueId& there = now_[static_cast<std::size_t>(stage)][at(id)];
    if (there.index >= 0) return there;
    const Value& value = step_.value(id);
    TensorSpec spec = value.spec;
    pp_.move(spec, stage);
    if (value.updates) {
      const ValueId older = on(stage, *value.updates);
      return there = program_.update(older, program_.unique_name(spec.name), std::move(spec.placement.spread));
    }
    if (value.part_of) {
      const std::int64_t distance = value.offset_bytes - step_.value(*value.part_of).offset_bytes;
      const ValueId whole = on(stage, *value.part_of);
      return there = program_.part(whole, std::move(spec), distance * 8 / bits_of(value.spec.dtype));
    }
    if (!value.source) return there = program_.reserve(std::move(spec));
    if (plan_.stage_of(id).value_or(stage) != stage)
      throw ProgramError("pipeline: '" + value.spec.name + "' is on another stage than stage " + std::to_string(stage));
    return there = program_.add(std::move(spec));
  }

  void append(int op) {
    const OpCall& call = step_.op(op);
    switch (plan_.run(op)) {
      case PipelinePlan::Run::on_stage: {
        const int stage = plan_.stage(op);
        append_on(stage, call, false);
        for (const ValueId id : call.outputs) send(id, stage);
        return;
      }
      case PipelinePlan::Run::everywhere:
        for (int stage = 0; stage < options_.stages; ++stage) append_on(stage, call, true);
        return;
      case PipelinePlan::Run::by_item: return append_by_item(call);
    }
  }

  void append_on(int stage, const OpCall& call, bool is_everywhere) {
    OpCall mine = call;
    for (std::vector<ValueId>* list : {&mine.inputs, &mine.outputs}) {
      for (ValueId& id : *list) id = on(stage, id);
    }
    if (const std::optional<int> rank = rank_of(step_, call)) {
      mine.label = pp_.label(call.label, *rank, stage);
    } else {
      mine.group = mine.held = pp_.group(call.group, stage);
      if (is_everywhere) mine.label = pp_.label(call.label, stage);
    }
    program_.append(std::move(mine));
  }

  void send_available() {
    program_.begin(Phase::timed);
    for (int index = 0; index < static_cast<int>(step_.values().size()); ++index) {
      const Value& value = step_.value({index});
      const bool is_there = value.source || (value.producer && step_.op(*value.producer).phase == Phase::setup);
      if (is_there && plan_.stage_of({index})) send({index}, *plan_.stage_of({index}));
    }
  }

  void send(ValueId id, int from) {
    const std::vector<int> to = plan_.sent_to(id);
    if (to.empty()) return;
    const int rank = step_.spec(id).placement.rank;
    std::vector<int> members{pp_.rank(from, rank)};
    for (const int stage : to) members.push_back(pp_.rank(stage, rank));
    const int ranks = static_cast<int>(members.size());
    const std::string label =
        program_.unique_name(name_on_rank(step_.spec(id).global_name(), rank, pp_.each()) + ".sent");
    const std::vector<ValueId> sent =
        broadcast(program_, {.ranks = ranks, .root = 0}, label, on(from, id), RankGroup(std::move(members)));
    for (std::size_t i = 0; i < to.size(); ++i) now_[static_cast<std::size_t>(to[i])][at(id)] = sent[i + 1];
  }

  void append_by_item(const OpCall& call) {
    const int rank = *rank_of(step_, call);
    const std::vector<std::optional<int>> inputs = plan_.item_stages(call, false);
    const std::vector<std::optional<int>> outputs = plan_.item_stages(call, true);
    if (call.kind == gradient_norm_kind) return append_norm(call, rank, inputs);
    const auto own = [&](const std::vector<ValueId>& ids, const std::vector<std::optional<int>>& stages, int stage) {
      std::vector<ValueId> mine;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (stages[i].value_or(stage) == stage) mine.push_back(on(stage, ids[i]));
      }
      return mine;
    };
    for (int stage = 0; stage < options_.stages; ++stage) {
      if (std::ranges::find(inputs, std::optional(stage)) == inputs.end()) continue;
      OpCall mine = call;
      mine.inputs = own(call.inputs, inputs, stage);
      mine.outputs = own(call.outputs, outputs, stage);
      mine.label = pp_.label(call.label, rank, stage);
      program_.append(std::move(mine));
    }
    if (call.kind == unscale_kind) agree(call, rank);
  }

  /// The norm of the stages' norms, and of gradients that every stage has.
  void append_norm(const OpCall& call, int rank, const std::vector<std::optional<int>>& stages) {
    std::map<int, std::vector<ValueId>> own;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      if (stages[i]) own[*stages[i]].push_back(on(*stages[i], call.inputs[i]));
    }
    std::vector<ValueId> norms;
    std::vector<int> having, lacking;
    for (const auto& [stage, gradients] : own) {
      const std::string label = program_.unique_name(pp_.label(call.label, rank, stage, ".of_stage"));
      norms.push_back(gradient_norm(program_, call.math, label, gradients));
      having.push_back(pp_.rank(stage, rank));
    }
    for (int stage = 0; stage < options_.stages; ++stage) {
      if (!own.contains(stage)) lacking.push_back(pp_.rank(stage, rank));
    }
    std::map<int, ValueId> of_stages;
    if (!own.empty()) {
      const std::string label = program_.unique_name(call.label + ".of_stages");
      norms = all_gather(program_, {static_cast<int>(having.size())}, label, norms, RankGroup(having));
      for (std::size_t i = 0; i < having.size(); ++i) of_stages[having[i]] = norms[i];
      if (!lacking.empty()) {
        lacking.insert(lacking.begin(), having.front());
        const std::vector<ValueId> sent =
            broadcast(program_, {.ranks = static_cast<int>(lacking.size()), .root = 0},
                      program_.unique_name(label + ".sent"), norms.front(), RankGroup(lacking));
        for (std::size_t i = 1; i < lacking.size(); ++i) of_stages[lacking[i]] = sent[i];
      }
    }
    for (int stage = 0; stage < options_.stages; ++stage) {
      OpCall mine = call;
      mine.inputs.clear();
      if (!own.empty()) mine.inputs.push_back(of_stages.at(pp_.rank(stage, rank)));
      for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        if (!stages[i]) mine.inputs.push_back(on(stage, call.inputs[i]));
      }
      mine.outputs = {on(stage, call.outputs.front())};
      mine.label = pp_.label(call.label, rank, stage);
      program_.append(std::move(mine));
    }
  }

  /// Combines found_inf of all stages.
  void agree(const OpCall& call, int rank) {
    const ValueId found_inf = call.output("found_inf");
    std::vector<ValueId> found;
    for (int stage = 0; stage < options_.stages; ++stage) found.push_back(on(stage, found_inf));
    found = all_reduce(program_, {options_.stages, Reduction::maximum}, call.math,
                       program_.unique_name(call.label + ".of_stages"), found, /*in_place=*/true, pp_.across(rank));
    for (int stage = 0; stage < options_.stages; ++stage)
      now_[static_cast<std::size_t>(stage)][at(found_inf)] = found[static_cast<std::size_t>(stage)];
  }

  const Program& step_;
  const PipelineParallel& options_;
  OuterAxis pp_;
  PipelinePlan plan_;
  Program program_;
  std::vector<std::vector<ValueId>> now_;  // by stage: the counterpart of each value of the step
};

}  // namespace

PartitionedStep pipeline_parallel(const Program& step, const PipelineParallel& options,
                                  std::span<const ValueId> gradients) {
  if (options.stages == 1) return {step, {gradients.begin(), gradients.end()}};
  return Stages(step, options).take(gradients);
}

}  // namespace gpubench

#include "reference/ops/transform/pipeline.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/step_parts.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace {

/// The op's micro-batch in accumulate(); none if its label has none.
std::optional<int> micro_batch_of(std::string_view label) {
  constexpr std::string_view mark = ".micro";
  const std::size_t found = label.rfind(mark);
  if (found == label.npos) return std::nullopt;
  int number = 0;
  const auto [stop, error] = std::from_chars(label.data() + found + mark.size(), label.data() + label.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool has_gradients(const Program& step, const OpCall& call) {
  const auto is_gradient = [&](ValueId id) { return step.spec(id).role == Role::gradient; };
  return std::ranges::any_of(call.inputs, is_gradient) || std::ranges::any_of(call.outputs, is_gradient);
}

/// The produced value that `id` is a view of.
ValueId made(const Program& step, ValueId id) {
  while (!step.value(id).producer && step.value(id).part_of) id = *step.value(id).part_of;
  return id;
}

}  // namespace

PipelinePlan::PipelinePlan(const Program& step, const PipelineParallel& options)
    : step_(step),
      options_(options),
      all_parts_(options.stages * options.parts),
      value_parts_(step.values().size()),
      known_(step.values().size()) {
  share_layers();
  for (int op = 0; op < static_cast<int>(step.ops().size()); ++op) place(op);
}

void PipelinePlan::share_layers() {
  bool behind = false;
  bool backward = false;  // unblocked backward ops belong to the first layers, with tied weights
  for (const OpCall& call : step_.ops()) {
    backward = backward || has_gradients(step_, call);
    if (const std::optional<int> block = block_of(call.label)) {
      blocks_ = std::max(blocks_, *block + 1);
      behind = true;
    } else {
      part_of_layer_.try_emplace(std::string(layer_of(call.label)), behind && !backward ? all_parts_ - 1 : 0);
    }
  }
  if (blocks_ < all_parts_)
    throw ProgramError("pipeline: the step has " + std::to_string(blocks_) +
                       " blocks; expected at least one for each of " + std::to_string(all_parts_) + " parts");
}

int PipelinePlan::part_of_layer(const OpCall& call) const {
  if (const std::optional<int> block = block_of(call.label)) return *block * all_parts_ / blocks_;
  return part_of_layer_.find(layer_of(call.label))->second;
}

bool PipelinePlan::is_everywhere(ValueId source) const {
  const TensorSpec& spec = step_.spec(source);
  const bool is_scalar = spec.role == Role::scalar || (spec.role == Role::state && spec.shape.elements() == 1);
  return spec.placement.spread.empty() && (is_scalar || spec.role == Role::input);
}

void PipelinePlan::set(ValueId id, std::optional<int> part) {
  value_parts_[at(id)] = part;
  known_[at(id)] = true;
}

void PipelinePlan::place(int op) {
  const OpCall& call = step_.op(op);
  if (takes_parameters(call.kind)) {
    runs_.push_back(Run::by_item);
    parts_.emplace_back();
    return place_items(call);
  }
  std::set<int> of_inputs;
  bool any_new = false;
  for (const ValueId id : call.inputs) {
    const ValueId whole = made(step_, id);
    const bool everywhere = step_.value(whole).source && is_everywhere(whole);
    any_new = any_new || (!known_[at(whole)] && !everywhere);
    if (const std::optional<int>& part = value_parts_[at(whole)]) of_inputs.insert(*part);
  }
  std::optional<int> part;
  if (any_new || !of_inputs.empty()) {
    const bool sums_gradients = call.label.starts_with("grad.") && of_inputs.size() == 1 && !any_new;
    part = sums_gradients ? *of_inputs.begin() : part_of_layer(call);  // so that a sum is sent, not its addends
    for (const ValueId id : call.inputs) need(id, *part);
  }
  runs_.push_back(part ? Run::on_stage : Run::everywhere);
  parts_.push_back(part);
  for (const ValueId id : call.outputs) set(id, part);
}

void PipelinePlan::need(ValueId id, int part) {
  id = made(step_, id);
  const Value& value = step_.value(id);
  if (value.source && is_everywhere(id)) return;
  if (value.source && !known_[at(id)]) set(id, part);
  std::optional<int> there = value_parts_[at(id)];
  if (!known_[at(id)]) {  // made in parts
    for (const ValueId each : step_.values_in(value.storage)) {
      if (value_parts_[at(each)]) there = value_parts_[at(each)];
    }
  }
  if (!there || *there % options_.stages == part % options_.stages) return;
  if (!known_[at(id)]) throw ProgramError("pipeline: cannot send '" + value.spec.name + "': it is made in parts");
  sent_[id].insert(part % options_.stages);
}

void PipelinePlan::place_items(const OpCall& call) {
  const std::string_view leader = leading_list(call.kind);
  const std::vector<OperandName> inputs = operand_names(call.kind.inputs, call.attributes, call.inputs.size());
  std::map<std::size_t, int> of_item;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<int>& part = value_parts_[at(made(step_, call.inputs[i]))];
    if (!part) continue;
    if (inputs[i].name == leader) of_item[inputs[i].item] = *part;
    if (inputs[i].name == "g") of_item.try_emplace(inputs[i].item, *part);  // of a bias that only another rank adds
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found = of_item.find(inputs[i].item);
    if (is_of_parameter(inputs[i].name) && found != of_item.end()) need(call.inputs[i], found->second);
  }
  const std::vector<OperandName> outputs = operand_names(call.kind.outputs, call.attributes, call.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto found = of_item.find(outputs[i].item);
    const bool is_item = is_of_parameter(outputs[i].name) && found != of_item.end();
    set(call.outputs[i], is_item ? std::optional(found->second) : std::nullopt);
  }
}

std::optional<int> PipelinePlan::stage_of(ValueId id) const {
  const std::optional<int>& part = value_parts_[at(made(step_, id))];
  return part ? std::optional(*part % options_.stages) : std::nullopt;
}

std::vector<std::optional<int>> PipelinePlan::item_stages(const OpCall& call, bool outputs) const {
  const std::string_view leader = leading_list(call.kind);
  const std::vector<OperandName> inputs = operand_names(call.kind.inputs, call.attributes, call.inputs.size());
  std::map<std::size_t, int> of_item;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const std::optional<int> stage = stage_of(call.inputs[i]); stage && inputs[i].name == leader)
      of_item[inputs[i].item] = *stage;
  }
  std::vector<std::optional<int>> stages;
  for (const OperandName& name :
       outputs ? operand_names(call.kind.outputs, call.attributes, call.outputs.size()) : inputs) {
    const auto found = of_item.find(name.item);
    const bool is_item = is_of_parameter(name.name) && found != of_item.end();
    stages.push_back(is_item ? std::optional(found->second) : std::nullopt);
  }
  return stages;
}

std::vector<int> PipelinePlan::sent_to(ValueId id) const {
  const auto found = sent_.find(id);
  return found == sent_.end() ? std::vector<int>() : std::vector<int>(found->second.begin(), found->second.end());
}

std::vector<int> PipelinePlan::order() const {
  std::vector<int> order, last;
  std::map<PipelineUnit, std::vector<int>> units;
  int micro = 0, micros = 1;
  bool backward = false;
  for (int op = 0; op < static_cast<int>(step_.ops().size()); ++op) {
    const OpCall& call = step_.op(op);
    if (call.phase == Phase::setup) {
      order.push_back(op);
      continue;
    }
    if (run(op) != Run::on_stage || !last.empty()) {
      last.push_back(op);
      continue;
    }
    const int now = micro_batch_of(call.label).value_or(micro);
    backward = (backward && now == micro) || has_gradients(step_, call);
    micro = now;
    micros = std::max(micros, micro + 1);
    units[{micro, *parts_[static_cast<std::size_t>(op)], backward}].push_back(op);
  }
  for (const PipelineUnit& unit : pipeline_order(options_, micros)) {
    const std::vector<int>& ops = units[unit];
    order.insert(order.end(), ops.begin(), ops.end());
  }
  order.insert(order.end(), last.begin(), last.end());
  return order;
}

}  // namespace gpubench

#include "reference/ops/transform/cut_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/core/error.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"

namespace gpubench {

ValueId whole_of(const Program& step, ValueId id) { return step.values_in(step.value(id).storage).front(); }

View view_of(const Program& step, ValueId id) {
  const Value& value = step.value(id);
  return {value.spec, value.offset_bytes * 8 / bits_of(value.spec.dtype)};
}

CutPlan::CutPlan(const Program& step, const Partition& options, const Cuts& cuts, std::span<const ValueId> gradients)
    : step_(step), options_(options), cuts_(step.values().size()), known_(step.values().size()) {
  if (options.has_own_batches) {
    gradients_.insert(gradients.begin(), gradients.end());
  }
  std::set<std::string, std::less<>> missing;
  for (const auto& [name, cut] : cuts) missing.insert(name);
  for (int index = 0; index < static_cast<int>(step.values().size()); ++index) {
    const Value& value = step.value({index});
    if (!value.source || value.part_of) continue;
    const auto found = cuts.find(value.spec.global_name());
    set({index}, found == cuts.end() ? MaybeCut{} : found->second);
    if (found != cuts.end()) missing.erase(found->first);
  }
  if (cuts.empty()) throw ProgramError("partition: no cuts given; expected at least one");
  if (!missing.empty()) throw ProgramError("partition: the step has no source '" + *missing.begin() + "'");
  for (const OpCall& call : step.ops()) share(call);
  for (int index = 0; index < static_cast<int>(step.values().size()); ++index) (void)cut({index});
}

const MaybeCut& CutPlan::cut(ValueId id) {
  if (!known_[at(id)]) set(id, derived(id));
  return cuts_[at(id)];
}

MaybeCut CutPlan::as_made(ValueId id) { return is_scattered(id) ? MaybeCut{} : cut(id); }

void CutPlan::set(ValueId id, MaybeCut cut) {
  if (cut && !divides(step_.spec(id), *cut, options_.ranks)) {
    throw ProgramError("partition: " + step_.spec(id).to_string() + " is cut along axis " + std::to_string(cut->axis) +
                       ", which " + std::to_string(options_.ranks) + " ranks cannot share equally");
  }
  cuts_[at(id)] = std::move(cut);
  known_[at(id)] = true;
}

void CutPlan::share(const OpCall& call) {
  std::vector<MaybeCut> inputs;
  for (const ValueId id : call.inputs) inputs.push_back(cut(id));
  OpSharding sharding = options_.has_own_batches ? on_own_batch(call, inputs) : sharding_of(step_, call, inputs);
  if (call.kind == embedding_backward_kind && !options_.has_own_batches) sharding.outputs[0] = cut_of_table(call);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const ValueId id = call.outputs[i];
    const bool scatters = sharding.addends[i] && (is_gradient(id) ? scatters_gradient(id) : scatters_well(call, id));
    if (sharding.addends[i]) addends_.insert(id);
    if (scatters) scattered_.insert(id);
    set(id, scatters ? MaybeCut{Cut{0}} : sharding.outputs[i]);
    const std::optional<ValueId> older = step_.value(id).updates;
    if (older && cut(*older) != cut(id))
      throw ProgramError("partition: op '" + call.label + "' updates '" + step_.spec(*older).name +
                         "', whose cut differs from the result's");
  }
  ops_.push_back(std::move(sharding));
}

// Forward and backward run on the rank's batch with whole weights. Shared are ops on gradients and what is made of
// them, and set-up ops that only make weights. Gradients are reduced, except those of experts, which one rank has.
OpSharding CutPlan::on_own_batch(const OpCall& call, std::span<const MaybeCut> inputs) {
  const bool shared = call.phase == Phase::setup || std::ranges::any_of(call.inputs, [&](ValueId id) {
                        return final_.contains(step_.value(id).storage);
                      });
  OpSharding sharding;
  if (shared) {
    sharding = sharding_of(step_, call, inputs);
  } else if (options_.spreads_experts) {
    sharding = expert_sharding_of(step_, call, inputs);
  } else {
    sharding.inputs.resize(call.inputs.size());
    sharding.outputs.resize(call.outputs.size());
    sharding.addends.resize(call.outputs.size());
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (is_gradient(call.outputs[i]) && !sharding.outputs[i]) sharding.addends[i] = options_.reduction;
    if (call.phase == Phase::timed && (shared || is_gradient(call.outputs[i])))
      final_.insert(step_.value(call.outputs[i]).storage);
  }
  return sharding;
}

// The gradient's cut follows the table that the same tokens look up, as no operand determines it.
MaybeCut CutPlan::cut_of_table(const OpCall& embedding_backward) {
  const ValueId tokens = embedding_backward.input("tokens"), gradient = embedding_backward.output("dtable");
  for (const OpCall& call : step_.ops()) {
    if (call.kind == embedding_forward_kind && call.input("tokens") == tokens &&
        step_.spec(call.input("table")).shape == step_.spec(gradient).shape && cut(call.input("table")) == Cut{0})
      return Cut{0};
  }
  return {};
}

// A gradient in a separate storage, without views, whose rows can be shared.
bool CutPlan::scatters_gradient(ValueId id) const {
  const Value& value = step_.value(id);
  const TensorSpec& spec = value.spec;
  for (const ValueId other : step_.values_in(value.storage)) {
    if (other != id && !step_.value(other).updates) return false;
  }
  return !options_.spreads_experts && !value.updates && spec.layout.is_row_major(spec.shape) && spec.shape.rank() > 0 &&
         spec.shape[0] % options_.ranks == 0;
}

// Rows of tokens, not a weight's gradient, without views.
bool CutPlan::scatters_well(const OpCall& call, ValueId id) const {
  const Value& value = step_.value(id);
  const bool has_rows_of_tokens =
      call.kind == gemm_kind ? !call.attributes.as<Gemm>().transpose_a : call.kind == embedding_forward_kind;
  return options_.scatters_tokens && has_rows_of_tokens && step_.values_in(value.storage).size() == 1 &&
         value.spec.shape.rank() == 2 && value.spec.shape[0] % options_.ranks == 0;
}

// The cut of values without a producer: views, and wholes made in parts.
MaybeCut CutPlan::derived(ValueId id) {
  const ValueId whole = whole_of(step_, id);
  if (id != whole) {
    const MaybeCut of_whole = cut(whole);
    if (!of_whole) return {};
    const bool has_parent = !gathered_views_.contains(*step_.value(id).part_of);
    MaybeCut cut = has_parent ? cut_of_view(step_.spec(whole), *of_whole, view_of(step_, id)) : MaybeCut{};
    if (!cut) gathered_views_.insert(id);
    return cut;
  }
  std::vector<CutRange> ranges;
  bool any_whole = false;
  for (const ValueId part : step_.values_in(step_.value(id).storage)) {
    if (part == whole || !known_[at(part)]) continue;
    const MaybeCut& of_part = cuts_[at(part)];
    any_whole = any_whole || !of_part;
    if (!of_part) continue;
    if (of_part->of_experts) return of_part;
    const std::optional<CutRange> range = range_of(step_.spec(whole), view_of(step_, part), *of_part);
    if (!range) refuse(part);
    ranges.push_back(*range);
  }
  if (ranges.empty()) return {};
  const std::optional<Cut> joined = any_whole ? std::nullopt : join(step_.spec(whole), std::move(ranges));
  if (!joined) refuse(whole);
  return joined;
}

void CutPlan::refuse(ValueId id) const {
  throw ProgramError("partition: '" + step_.spec(id).name + "' and '" + step_.spec(whole_of(step_, id)).name +
                     "', in the same storage, cannot be cut together");
}

}  // namespace gpubench

#include "harness/core/program.h"

#include <algorithm>

namespace gpubench {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

std::string list_of(const Program& program, std::span<const ValueId> ids) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + program.spec(id).name;
  return text;
}

ValueId operand(const OpCall& call, std::string_view declared, const std::vector<ValueId>& ids, std::string_view name,
                std::size_t i) {
  const auto at = position_of(declared, call.attributes, name, i);
  if (at && *at < ids.size()) return ids[*at];
  throw ProgramError("op '" + call.label + "' (" + std::string(call.kind.name) + ") has no operand '" +
                     std::string(name) + "'");
}

/// "  [tp: 4, 5]" for a collective of some of the ranks, else empty.
std::string members_of(const Program& program, const OpCall& op) {
  if (op.group.empty()) return {};
  const std::vector<ValueId>& tensors = op.outputs.empty() ? op.inputs : op.outputs;
  if (op.group == RankGroup::first(program.spec(tensors.front()).placement.ranks)) return {};
  const std::optional<int> axis = program.mesh().axis_of(op.group);
  const std::string name = axis ? program.mesh().axes()[static_cast<std::size_t>(*axis)].name : "ranks";
  return "  [" + name + ": " + op.group.to_string() + "]";
}

}  // namespace

ValueId OpCall::input(std::string_view name, std::size_t i) const {
  return operand(*this, kind.inputs, inputs, name, i);
}
ValueId OpCall::output(std::string_view name, std::size_t i) const {
  return operand(*this, kind.outputs, outputs, name, i);
}

Program::Program(Mesh mesh, std::vector<int> held) : mesh_(std::move(mesh)) {
  for (const int rank : held) {
    if (rank < 0 || rank >= mesh_.ranks())
      throw ProgramError("a program cannot hold rank " + std::to_string(rank) + " of a mesh of " +
                         std::to_string(mesh_.ranks()) + " ranks");
  }
  if (held.empty()) return;
  is_held_.resize(static_cast<std::size_t>(mesh_.ranks()));
  for (const int rank : held) is_held_[static_cast<std::size_t>(rank)] = true;
  held_ = RankGroup(std::move(held));
}

ValueId Program::add_value(Value value) {
  if (!holds(value.spec.placement.rank)) {
    throw ProgramError("tensor " + quoted(value.spec.name) + " lies on rank " +
                       std::to_string(value.spec.placement.rank) + "; the program holds " + held_.to_string());
  }
  if (!names_.insert(value.spec.name).second)
    throw ProgramError("tensor name " + quoted(value.spec.name) + " is taken");
  const ValueId id{static_cast<int>(values_.size())};
  const auto storage = static_cast<std::size_t>(value.storage.index);
  if (storage == in_storage_.size()) in_storage_.emplace_back();
  in_storage_[storage].push_back(id);
  readers_.emplace_back();
  elements_made_by_parts_.push_back(0);
  values_.push_back(std::move(value));
  region_.push_back(in_storage_[storage].front());
  if (is_proper_part(id)) region_.back() = first_in_place(id);
  return id;
}

ValueId Program::first_in_place(ValueId part) {
  const Value& its = values_.back();
  std::vector<ValueId>& there = regions_at_[{*its.part_of, its.offset_bytes}];
  for (const ValueId other : there) {
    if (spec(other).layout == its.spec.layout) return other;
  }
  there.push_back(part);
  return part;
}

bool Program::is_proper_part(ValueId id) const {
  const Value& its = value(id);
  return its.part_of && !its.updates;
}

ValueId Program::add(TensorSpec spec) {
  const ValueId id = reserve(std::move(spec));
  values_.back().source = true;
  return id;
}

ValueId Program::reserve(TensorSpec spec) {
  Value value;
  value.storage = StorageId{static_cast<int>(storages_.size())};
  Storage storage{spec.name, spec.bytes(), spec.placement.memory, spec.placement.rank};
  value.spec = std::move(spec);
  const ValueId id = add_value(std::move(value));
  storages_.push_back(std::move(storage));
  return id;
}

ValueId Program::part(ValueId whole, TensorSpec spec, std::int64_t first_element) {
  const Value& parent = value(whole);
  if (spec.dtype != parent.spec.dtype)
    throw ProgramError("part " + quoted(spec.name) + " has another type than " + quoted(parent.spec.name));
  Value value;
  value.storage = parent.storage;
  if (first_element % std::max(8 / bits_of(spec.dtype), 1) != 0)
    throw ProgramError("part " + quoted(spec.name) + " begins within a byte of " + quoted(parent.spec.name));
  value.offset_bytes = parent.offset_bytes + bytes_of(spec.dtype, first_element);
  value.part_of = whole;
  if (first_element < 0 || value.offset_bytes + spec.bytes() > parent.offset_bytes + parent.spec.bytes()) {
    throw ProgramError("part " + quoted(spec.name) + " reaches outside " + quoted(parent.spec.name));
  }
  value.source = parent.source;
  spec.placement.memory = parent.spec.placement.memory;
  spec.placement.rank = parent.spec.placement.rank;
  spec.placement.ranks = parent.spec.placement.ranks;
  value.spec = std::move(spec);
  return add_value(std::move(value));
}

ValueId Program::update(ValueId old, std::string name) {
  return update(old, std::move(name), spec(old).placement.spread);
}

ValueId Program::update(ValueId old, std::string name, std::vector<AxisSpread> spread) {
  Value value = this->value(old);
  value.spec.name = std::move(name);
  value.spec.placement.spread = std::move(spread);
  value.updates = old;
  value.producer.reset();
  value.source = false;
  return add_value(std::move(value));
}

std::span<const ValueId> Program::append(OpCall call) {
  if (ops_.size() >= max_ops)
    throw ProgramError("the program has more than " + std::to_string(max_ops) + " ops; expected fewer");
  if (call.group.empty() && !rank_of(*this, call)) {
    throw ProgramError("op " + quoted(call.label) +
                       " has tensors on several ranks; expected one rank, or a collective that names its members");
  }
  if (labels_.contains(call.label)) throw ProgramError("op label " + quoted(call.label) + " is taken");
  expect_operands(call.kind, call.kind.inputs, call.attributes, call.inputs.size(), "inputs", call.label);
  expect_operands(call.kind, call.kind.outputs, call.attributes, call.outputs.size(), "outputs", call.label);
  for (const ValueId input : call.inputs) {
    if (!available(input)) {
      throw ProgramError("op " + quoted(call.label) + " reads " + quoted(spec(input).name) +
                         " before an op produces it");
    }
  }
  for (const ValueId input : call.inputs)
    readers_[static_cast<std::size_t>(input.index)].push_back(static_cast<int>(ops_.size()));
  for (const ValueId output : call.outputs) {
    Value& value = values_.at(static_cast<std::size_t>(output.index));
    if (value.producer || value.source)
      throw ProgramError("op " + quoted(call.label) + " would produce " + quoted(value.spec.name) + " again");
    value.producer = static_cast<int>(ops_.size());
    // Parts are disjoint, so each element counts once. A newer version of a part adds none.
    if (is_proper_part(output))
      elements_made_by_parts_[static_cast<std::size_t>(value.part_of->index)] += value.spec.shape.elements();
  }
  labels_.insert(call.label);
  if (phase_ == Phase::setup) call.phase = Phase::setup;
  ops_.push_back(std::move(call));
  return ops_.back().outputs;
}

std::string Program::unique_name(std::string_view wanted) {
  std::string candidate(wanted);
  const auto taken = [&] { return names_.contains(candidate) || labels_.contains(candidate); };
  if (!taken()) return candidate;
  int& number = next_number_.try_emplace(candidate, 2).first->second;
  for (;; ++number) {
    candidate.resize(wanted.size());
    candidate += "." + std::to_string(number);
    if (!taken()) return candidate;
  }
}

const Value& Program::value(ValueId id) const {
  if (id.index < 0 || id.index >= static_cast<int>(values_.size())) throw ProgramError("no such value");
  return values_[static_cast<std::size_t>(id.index)];
}

bool Program::available(ValueId id) const {
  const Value& v = value(id);
  if (v.source || v.producer) return true;
  if (v.part_of && available(*v.part_of)) return true;
  return elements_made_by_parts_[static_cast<std::size_t>(id.index)] == v.spec.shape.elements();
}

bool Program::overlaps(ValueId a, ValueId b) const {
  if (value(a).storage != value(b).storage) return false;
  // Different parts of one whole are declared disjoint: with interleaved strides, byte ranges would overlap.
  const bool siblings = is_proper_part(a) && is_proper_part(b) && value(a).part_of == value(b).part_of;
  return !siblings || region(a) == region(b);
}

std::int64_t Program::bytes() const {
  std::int64_t total = 0;
  for (const Storage& storage : storages_) {
    total += storage.bytes;
    if (total > max_tensor_bytes) throw ProgramError("the program's tensors have more than 2^50 bytes in total");
  }
  return total;
}

bool Program::is_state(StorageId id) const {
  bool initial = false;
  bool overwritten = false;
  for (const ValueId in : in_storage_.at(static_cast<std::size_t>(id.index))) {
    const Value& value = this->value(in);
    const bool timed = value.producer && op(*value.producer).phase == Phase::timed;
    initial = initial || value.source || (value.producer && !timed);
    overwritten = overwritten || timed;
  }
  return initial && overwritten;
}

std::string Program::to_string() const {
  std::string text;
  for (const Value& value : values_) {
    text += "  " + value.spec.to_string() + "  " + std::string(name(value.spec.role));
    if (value.part_of) text += ", part of " + spec(*value.part_of).name;
    if (value.updates) text += ", updates " + spec(*value.updates).name;
    if (value.source) text += ", filled";
    text += "\n";
  }
  for (const OpCall& op : ops_) {
    const std::string attributes = op.attributes.to_string();
    text += "  " + op.label + " = " + std::string(op.kind.name) + (attributes.empty() ? "" : "{" + attributes + "}") +
            "(" + list_of(*this, op.inputs) + ") -> " + list_of(*this, op.outputs) + members_of(*this, op) +
            (op.phase == Phase::setup ? "  [set-up]" : "") + "\n";
  }
  return text;
}

std::vector<TensorSpec> specs_of(const Program& program, std::span<const ValueId> ids) {
  std::vector<TensorSpec> specs;
  specs.reserve(ids.size());
  for (const ValueId id : ids) specs.push_back(program.spec(id));
  return specs;
}

std::vector<TensorSpec> specs_of_call(const Program& program, const OpCall& call) {
  std::vector<TensorSpec> specs = specs_of(program, call.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);
  specs.insert(specs.end(), outputs.begin(), outputs.end());
  return specs;
}

std::optional<int> rank_of(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (call.group.size() > 1) return std::nullopt;
  if (tensors.empty()) return 0;
  const int first = tensors.front().placement.rank;
  const bool same =
      std::all_of(tensors.begin(), tensors.end(), [first](const TensorSpec& t) { return t.placement.rank == first; });
  return same ? std::optional(first) : std::nullopt;
}

std::optional<int> rank_of(const Program& program, const OpCall& call) {
  if (call.group.size() > 1) return std::nullopt;
  std::optional<int> rank;
  for (const std::vector<ValueId>* list : {&call.inputs, &call.outputs}) {
    for (const ValueId id : *list) {
      const int its = program.spec(id).placement.rank;
      if (rank && *rank != its) return std::nullopt;
      rank = its;
    }
  }
  return rank.value_or(0);
}

std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::vector<bool>& drop, const std::map<ValueId, ValueId>& updates) {
  std::vector<ValueId> ids;
  const auto copied = [&ids](ValueId id) { return ids.at(static_cast<std::size_t>(id.index)); };
  for (const Value& value : from.values()) {
    if (!drop.empty() && drop[ids.size()]) {
      ids.emplace_back();
      continue;
    }
    TensorSpec spec = value.spec;
    edit(spec);
    const auto older = updates.find({static_cast<int>(ids.size())});
    if (older != updates.end()) {
      ids.push_back(to.update(copied(older->second), spec.name));
    } else if (value.updates) {
      ids.push_back(to.update(copied(*value.updates), spec.name));
    } else if (value.part_of) {
      const std::int64_t distance = value.offset_bytes - from.value(*value.part_of).offset_bytes;
      ids.push_back(to.part(copied(*value.part_of), std::move(spec), distance * 8 / bits_of(value.spec.dtype)));
    } else if (value.source) {
      ids.push_back(to.add(std::move(spec)));
    } else {
      ids.push_back(to.reserve(std::move(spec)));
    }
  }
  return ids;
}

Program widen(const Program& program) {
  Program wide;
  (void)copy_values(program, wide, [](TensorSpec& spec) {  // keeps the ids
    if (is_float(spec.dtype)) spec.dtype = DType::f64;
  });
  for (OpCall op : program.ops()) {
    op.math = Math{.accumulate = DType::f64};  // no rounding of inputs either
    wide.begin(op.phase);
    wide.append(std::move(op));
  }
  wide.begin(Phase::timed);
  return wide;
}

bool Program::survives(ValueId id) const {
  const Value& value = this->value(id);
  return value.producer && std::none_of(values_.begin(), values_.end(), [&](const Value& other) {
           return other.updates && other.storage == value.storage && other.producer &&
                  *other.producer > *value.producer;
         });
}

}  // namespace gpubench

#include "reference/ops/transform/gradient_ledger.h"

#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {

std::string GradientLedger::gradient_name(ValueId value) const {
  return program_.unique_name("d(" + program_.spec(value).name + ")");
}

// With the value's strides, so that parts have the same strides and offsets in the gradient.
ValueId GradientLedger::reserve_like(ValueId value) {
  TensorSpec spec = tensor(gradient_name(value), gradient_type(program_.spec(value).dtype), program_.spec(value).shape,
                           Role::gradient);
  spec.layout = program_.spec(value).layout;
  return program_.reserve(std::move(spec));
}

ValueId GradientLedger::reserve_rows(ValueId value) {
  return program_.reserve(tensor(gradient_name(value), gradient_type(program_.spec(value).dtype),
                                 program_.spec(value).shape, Role::gradient));
}

// Whether the gradient of a part, or of a covering view, lies inside a packed one.
bool GradientLedger::packed(ValueId canonical) const {
  const ValueId root = families_.root(canonical);
  if (canonical == root) return false;
  if (needs_.wholes.contains(root)) return true;
  std::int64_t covered = 0;
  for (const ValueId member : families_.members(root)) {
    if (!families_.covers(member) && needs_.readers.contains(member)) covered += program_.spec(member).shape.elements();
  }
  return families_.covers(canonical) || covered == program_.spec(root).shape.elements();
}

// Proper parts share the packed gradient of their root; a covering view has a separate one.
ValueId GradientLedger::slot(ValueId canonical) {
  if (const auto found = slots_.find(canonical); found != slots_.end()) return found->second;
  const ValueId root = families_.root(canonical);
  const ValueId owner = families_.covers(canonical) ? canonical : root;
  if (!packed_.contains(owner)) packed_[owner] = reserve_like(root);
  return slots_[canonical] = view(packed_.at(owner), canonical);
}

ValueId GradientLedger::view(ValueId whole_gradient, ValueId canonical) {
  TensorSpec spec = tensor(gradient_name(canonical), gradient_type(program_.spec(canonical).dtype),
                           program_.spec(canonical).shape, Role::gradient);
  spec.layout = program_.spec(canonical).layout;
  return program_.part(whole_gradient, std::move(spec), families_.first_element(canonical));
}

ValueId GradientLedger::destination(ValueId value) {
  const ValueId id = families_.canonical(value);
  const ValueId root = families_.root(id);
  if (id == root) return program_.spec(id).layout.blocks.empty() ? reserve_like(id) : reserve_rows(id);
  // With several readers, only the sum goes to the packed gradient.
  const auto readers = needs_.readers.find(id);
  const bool alone = readers != needs_.readers.end() && readers->second == 1;
  return alone && !slots_.contains(id) && packed(id) ? slot(id) : reserve_rows(id);
}

void GradientLedger::contribute(ValueId value, ValueId gradient, const Math& math) {
  const TensorSpec& want = program_.spec(value);
  const TensorSpec& got = program_.spec(gradient);
  if (got.shape != want.shape || got.dtype != gradient_type(want.dtype)) {
    throw ProgramError("differentiate: the gradient '" + got.to_string() + "' does not fit its value '" +
                       want.to_string() + "'; expected the same shape and type");
  }
  if (!program_.available(gradient)) {
    throw ProgramError("differentiate: no op produces '" + got.name + "', contributed as a gradient of '" + want.name +
                       "'");
  }
  const ValueId id = families_.canonical(value);
  const bool in_whole = families_.covers(id) || needs_.wholes.contains(families_.root(id));
  if (gradients_.contains(id) || (in_whole && wholes_.contains(families_.root(id)))) {
    throw ProgramError("differentiate: a gradient of '" + want.name +
                       "' comes after they were added up; its readers must " + "follow the op that produces it");
  }
  summands_[id].push_back({gradient, math});
}

// Copies the logical values. Needed only if a rule passes a gradient on instead of writing one.
GradientLedger::Summand GradientLedger::move_into(ValueId target, const Summand& from, ValueId value) {
  const std::string label = program_.unique_name("grad." + program_.spec(value).name);
  program_.append({reorder_kind, {}, from.math, {from.gradient}, {target}, label});
  return {target, from.math};
}

std::optional<GradientLedger::Summand> GradientLedger::add_up(const std::vector<Summand>& summands, ValueId value,
                                                              std::optional<ValueId> target) {
  if (summands.empty()) return {};
  Summand sum = summands.front();
  for (std::size_t i = 1; i < summands.size(); ++i) {
    const Summand& next = summands[i];
    const std::string label = program_.unique_name("grad." + program_.spec(value).name);
    const bool last = i + 1 == summands.size();
    const ValueId to = last && target ? *target : reserve_rows(value);
    program_.append({add_kind, {}, next.math, {sum.gradient, next.gradient}, {to}, label});
    sum = {to, next.math};
  }
  return target && sum.gradient != *target ? move_into(*target, sum, value) : sum;
}

ValueId GradientLedger::as_root(ValueId covering, const Summand& sum) {
  const ValueId root = families_.root(covering);
  if (covering == root) return sum.gradient;
  const auto taken = slots_.find(covering);
  if (taken != slots_.end() && taken->second == sum.gradient) return packed_.at(covering);
  const auto rows = [this](ValueId id) { return program_.spec(id).layout.is_row_major(program_.spec(id).shape); };
  if (rows(root) && rows(covering) && rows(sum.gradient)) {
    TensorSpec spec = tensor(gradient_name(root), gradient_type(program_.spec(root).dtype), program_.spec(root).shape,
                             Role::gradient);
    return program_.part(sum.gradient, std::move(spec), 0);
  }
  move_into(slot(covering), sum, covering);
  return packed_.at(covering);
}

std::optional<GradientLedger::Summand> GradientLedger::collected_parts(ValueId root) {
  std::int64_t covered = 0;
  std::string missing;
  Math math;
  for (const ValueId member : families_.members(root)) {
    if (families_.covers(member)) continue;
    const auto found = summands_.find(member);
    if (found == summands_.end()) {
      missing += (missing.empty() ? "'" : ", '") + program_.spec(member).name + "'";
      continue;
    }
    math = add_up(found->second, member, slot(member))->math;
    covered += program_.spec(member).shape.elements();
  }
  if (covered == 0) return {};
  const std::int64_t elements = program_.spec(root).shape.elements();
  if (covered != elements) {
    throw ProgramError("differentiate: the parts of '" + program_.spec(root).name + "' that receive a gradient have " +
                       std::to_string(covered) + " of its " + std::to_string(elements) +
                       " elements; nothing flows into " + (missing.empty() ? "the rest" : missing) +
                       ", and zero is not assumed");
  }
  return Summand{packed_.at(root), math};
}

// The gradient of a root: direct contributions, those of covering views, and those of parts if they are collected.
std::optional<GradientLedger::Summand> GradientLedger::whole(ValueId root) {
  if (const auto known = wholes_.find(root); known != wholes_.end()) return known->second;
  std::vector<Summand> parts;
  for (const ValueId member : families_.members(root)) {
    if (!families_.covers(member)) continue;
    const auto found = summands_.find(member);
    if (found == summands_.end()) continue;
    const Summand sum = *add_up(found->second, member, {});
    parts.push_back({as_root(member, sum), sum.math});
  }
  if (needs_.wholes.contains(root)) {
    if (const auto collected = collected_parts(root)) parts.push_back(*collected);
  }
  return wholes_[root] = add_up(parts, root, {});
}

GradientLedger::Summand GradientLedger::of_member(ValueId id, Summand whole) {
  const ValueId root = families_.root(id);
  if (id == root) return whole;
  const auto slot = slots_.find(id);
  const auto packed = packed_.find(families_.covers(id) ? id : root);
  if (slot != slots_.end() && packed->second == whole.gradient) return {slot->second, whole.math};
  if (program_.spec(whole.gradient).layout != program_.spec(root).layout) {
    whole = move_into(reserve_like(root), whole, root);
  }
  return {view(whole.gradient, id), whole.math};
}

std::optional<ValueId> GradientLedger::gradient(ValueId value) {
  const ValueId id = families_.canonical(value);
  if (const auto known = gradients_.find(id); known != gradients_.end()) return known->second;
  // Without collection, a proper part's gradient is its readers' contributions and its part of the whole's.
  std::vector<Summand> summands;
  const ValueId root = families_.root(id);
  if (!families_.covers(id) && !needs_.wholes.contains(root)) summands = summands_[id];
  if (const auto all = whole(root)) summands.push_back(of_member(id, *all));
  const bool in_place = summands.size() > 1 && packed(id);
  const auto sum = add_up(summands, id, in_place ? std::optional(slot(id)) : std::nullopt);
  return gradients_[id] = sum ? std::optional(sum->gradient) : std::nullopt;
}

namespace {

bool same_view(const Value& a, const Value& b) {
  return a.offset_bytes == b.offset_bytes && a.spec.shape == b.spec.shape && a.spec.layout == b.spec.layout;
}

}  // namespace

ValueFamilies::ValueFamilies(const Program& program) : entries_(program.values().size()) {
  for (int index = 0; index < static_cast<int>(entries_.size()); ++index) {
    const ValueId id{index};
    const Value& value = program.value(id);
    Entry& entry = at(id);
    entry.root = entry.canonical = id;
    if (value.part_of && !value.updates) {
      entry.root = at(*value.part_of).root;  // parts are declared after their wholes
      const Value& whole = program.value(entry.root);
      entry.first_element = (value.offset_bytes - whole.offset_bytes) * 8 / bits_of(whole.spec.dtype);
      entry.covers = value.spec.shape.elements() == whole.spec.shape.elements();
      for (const ValueId member : at(entry.root).members) {
        if (same_view(program.value(member), value)) entry.canonical = member;
      }
    }
    if (entry.canonical == id) at(entry.root).members.push_back(id);
  }
}

}  // namespace gpubench

#include "harness/core/step_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>

namespace gpubench {
namespace {

std::vector<StepPart> parts_by(std::span<const OpShare> ops,
                               const std::function<std::string_view(const OpShare&)>& name) {
  std::vector<StepPart> parts;
  for (const OpShare& op : ops) {
    const std::string_view its = name(op);
    auto part = std::ranges::find(parts, its, &StepPart::name);
    if (part == parts.end()) part = parts.insert(parts.end(), StepPart{.name = std::string(its)});
    ++part->ops;
    part->median_ns += op.median_ns;
    part->share += op.share;
    part->flop += op.flop;
    part->bytes += op.bytes;
    if (std::pair(op.median_ns, op.flop) <= std::pair(part->largest_ns, part->largest_flop)) continue;
    part->largest = op.label;
    part->largest_ns = op.median_ns;
    part->largest_flop = op.flop;
  }
  return parts;
}

enum Kind { weights, masters, gradients, state, saved, activations, other_gradients, inputs, kinds };
constexpr std::array<const char*, kinds> kind_names{
    "weights",           "master weights",    "gradients",       "optimizer state",
    "saved activations", "other activations", "other gradients", "inputs"};

bool writes(const Program& program, const OpCall& op, Role role) {
  return std::ranges::any_of(op.outputs, [&](ValueId id) { return program.spec(id).role == role; });
}

bool has_reader(const Program& program, StorageId storage, const std::function<bool(const OpCall&)>& wanted) {
  return std::ranges::any_of(program.values_in(storage), [&](ValueId id) {
    return std::ranges::any_of(program.readers(id), [&](int op) { return wanted(program.op(op)); });
  });
}

Kind kind_of(const Program& program, StorageId storage) {
  const auto makes = [&program](Role role) {
    return [&program, role](const OpCall& op) { return writes(program, op, role); };
  };
  switch (program.spec(program.values_in(storage).front()).role) {
    case Role::parameter: {
      const auto copies = [&](const OpCall& op) {
        return op.phase == Phase::setup && writes(program, op, Role::parameter);
      };
      return has_reader(program, storage, copies) ? masters : weights;
    }
    case Role::gradient: return has_reader(program, storage, makes(Role::parameter)) ? gradients : other_gradients;
    case Role::state: return state;
    case Role::activation:
    case Role::statistic: return has_reader(program, storage, makes(Role::gradient)) ? saved : activations;
    case Role::input:
    case Role::scalar: break;
  }
  return inputs;
}

}  // namespace

std::string_view layer_of(std::string_view label) {
  constexpr std::string_view sum_of_gradients = "grad.";
  if (label.starts_with(sum_of_gradients)) label.remove_prefix(sum_of_gradients.size());
  return label.substr(0, label.find_first_of(".+@"));
}

std::optional<int> block_of(std::string_view label) {
  const std::string_view layer = layer_of(label);
  const std::size_t digits = layer.find_last_not_of("0123456789") + 1;
  int number = 0;
  const char* const end = layer.data() + layer.size();
  if (label.find('.') == label.npos || digits == layer.size()) return std::nullopt;
  const auto [stop, error] = std::from_chars(layer.data() + digits, end, number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::string in_layer(const Program& program, const OpCall& op) {
  const std::string_view own = layer_of(op.label);
  const auto is_other = [&](const OpCall& other) { return layer_of(other.label) != own; };
  return std::ranges::any_of(program.ops(), is_other) ? " in layer " + std::string(own) : "";
}

std::vector<StepPart> parts_by_kind(std::span<const OpShare> ops) {
  std::vector<StepPart> parts = parts_by(ops, [](const OpShare& op) -> std::string_view { return op.kind; });
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const StepPart& part) { return std::pair(part.median_ns, part.flop); });
  return parts;
}

std::vector<StepPart> parts_by_layer(std::span<const OpShare> ops) {
  return parts_by(ops, [](const OpShare& op) { return layer_of(op.label); });
}

std::optional<double> utilization(const Derived& step, double flop_per_s) {
  if (!step.peak || !step.peak->peak || step.peak->limit == "memory" || step.peak->limit == "link") return std::nullopt;
  return flop_per_s / *step.peak->peak;
}

std::string_view utilization_name(const Case& c) { return c.has_mode(recompute_mode) ? "HFU" : "MFU"; }

std::vector<MemoryPart> memory_by_kind(const Program& program) {
  std::array<std::int64_t, kinds> bytes{};
  for (int i = 0; i < static_cast<int>(program.storages().size()); ++i)
    bytes[kind_of(program, {i})] += program.storages()[static_cast<std::size_t>(i)].bytes;
  std::vector<MemoryPart> parts;
  for (int kind = 0; kind < kinds; ++kind) {
    const auto at = static_cast<std::size_t>(kind);
    if (bytes[at] > 0) parts.push_back({kind_names[at], bytes[at]});
  }
  return parts;
}

}  // namespace gpubench

#include "harness/remote/requests.h"

#include <fmt/format.h>

#include <array>
#include <list>
#include <utility>
#include <variant>

#include "harness/core/call_view.h"
#include "reference/ops/definition.h"

namespace gpubench {

template <>
inline constexpr auto enum_names<Phase> = std::to_array<std::string_view>({"setup", "timed"});
template <>
inline constexpr auto enum_names<Fill::Kind> = std::to_array<std::string_view>({"normal", "positive", "integers",
                                                                                "constant", "sequence", "norm_rows",
                                                                                "pointwise", "tiny_mix", "boundaries",
                                                                                "masked"});
template <>
inline constexpr auto enum_names<AxisSpread::Kind> = std::to_array<std::string_view>({"sharded", "partial"});

namespace {

void put_placement(MessageWriter& to, const Placement& placement) {
  to.put_list(placement.spread, [&to](const AxisSpread& one) {
    to.put(one.kind);
    for (const int number : {one.mesh_axis, one.tensor_axis, one.part, one.parts}) to.put(number);
    to.put_list(one.sections);
  });
  to.put(placement.memory);
  to.put(placement.rank);
  to.put(placement.ranks);
}

Placement get_placement(MessageReader& from) {
  Placement placement;
  placement.spread = from.list([&from] {
    AxisSpread one;
    one.kind = from.get<AxisSpread::Kind>();
    for (int* number : {&one.mesh_axis, &one.tensor_axis, &one.part, &one.parts}) *number = from.get<int>();
    one.sections = from.numbers<std::int64_t>();
    return one;
  });
  placement.memory = from.get<Memory>();
  placement.rank = from.get<int>();
  placement.ranks = from.get<int>();
  return placement;
}

void put_layout(MessageWriter& to, const Layout& layout) {
  to.put_list(layout.strides);
  to.put_list(layout.blocks, [&to](const InnerBlock& block) {
    to.put(block.axis);
    to.put(block.size);
  });
}

Layout get_layout(MessageReader& from, int rank) {
  Layout layout;
  layout.strides = from.numbers<std::int64_t>();
  layout.blocks = from.list([&from] {
    const int axis = from.get<int>();
    return InnerBlock{axis, from.get<std::int64_t>()};
  });
  if (static_cast<int>(layout.strides.size()) != rank)
    throw MessageError("tensor in a message: the number of strides differs from the number of axes");
  for (const InnerBlock& block : layout.blocks) {
    if (block.axis < 0 || block.axis >= rank || block.size < 1)
      throw MessageError("tensor in a message: a block has an invalid axis or size");
  }
  return layout;
}

// The value's index in the variant (u8), then the value.
void put_attribute(MessageWriter& to, const Attribute& attribute) {
  to.put(attribute.name);
  to.put(static_cast<std::uint8_t>(attribute.value.index()));
  std::visit(
      [&to](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<std::int64_t>>) {
          to.put_list(value);
        } else {
          to.put(value);
        }
      },
      attribute.value);
}

// `texts` owns the names and words: the values only view them.
NamedValue get_attribute(MessageReader& from, std::list<std::string>& texts) {
  const std::string_view name = texts.emplace_back(from.text());
  switch (from.get<std::uint8_t>()) {
    case 0: return {name, from.get_bool()};
    case 1: return {name, from.get<std::int64_t>()};
    case 2: return {name, from.get<double>()};
    case 3: return {name, std::string_view(texts.emplace_back(from.text()))};
    case 4: return {name, from.numbers<std::int64_t>()};
    default: throw MessageError("attribute in a message: unknown type");
  }
}

void put_ids(MessageWriter& to, std::span<const ValueId> ids) {
  to.put_list(ids, [&to](ValueId id) { to.put(id.index); });
}

std::vector<ValueId> get_ids(MessageReader& from) {
  return from.list([&from] { return ValueId{from.get<int>()}; });
}

void put_group(MessageWriter& to, const RankGroup& group) { to.put_list(group.members()); }

RankGroup get_group(MessageReader& from) {
  std::vector<int> members = from.numbers<int>();
  return members.empty() ? RankGroup() : RankGroup(std::move(members));
}

void put_pairs(MessageWriter& to, const std::vector<std::pair<std::string, std::string>>& pairs) {
  to.put_list(pairs, [&to](const auto& pair) {
    to.put(pair.first);
    to.put(pair.second);
  });
}

std::vector<std::pair<std::string, std::string>> get_pairs(MessageReader& from) {
  return from.list([&from] {
    std::string first = from.text();
    return std::pair(std::move(first), from.text());
  });
}

}  // namespace

void put_spec(MessageWriter& to, const TensorSpec& spec) {
  to.put(spec.name);
  to.put_list(spec.shape.extents());
  to.put(spec.dtype);
  put_layout(to, spec.layout);
  to.put(spec.role);
  to.put(spec.fill.kind);
  to.put(spec.fill.scale);
  to.put(spec.fill.low);
  to.put(spec.fill.high);
  put_placement(to, spec.placement);
}

TensorSpec get_spec(MessageReader& from) {
  TensorSpec spec;
  spec.name = from.text();
  spec.shape = Shape(from.numbers<std::int64_t>());
  spec.dtype = from.get<DType>();
  spec.layout = get_layout(from, spec.shape.rank());
  spec.role = from.get<Role>();
  spec.fill.kind = from.get<Fill::Kind>();
  spec.fill.scale = from.get<double>();
  spec.fill.low = from.get<std::int64_t>();
  spec.fill.high = from.get<std::int64_t>();
  spec.placement = get_placement(from);
  return spec;
}

void put_specs(MessageWriter& to, std::span<const TensorSpec> specs) {
  to.put_list(specs, [&to](const TensorSpec& spec) { put_spec(to, spec); });
}

std::vector<TensorSpec> get_specs(MessageReader& from) {
  return from.list([&from] { return get_spec(from); });
}

void put_call(MessageWriter& to, const OpCall& call) {
  to.put(call.kind.name);
  to.put_list(call.attributes.list(), [&to](const Attribute& attribute) { put_attribute(to, attribute); });
  to.put(call.math.accumulate);
  to.put(call.math.inputs);
  to.put(call.math.fast_accumulation);
  to.put(call.math.split_k_in_output);
  to.put(call.math.approximate_tanh);
  put_ids(to, call.inputs);
  put_ids(to, call.outputs);
  to.put(call.label);
  to.put(call.phase);
  put_group(to, call.group);
  put_group(to, call.held);
}

OpCall get_call(MessageReader& from) {
  const std::string name = from.text();
  const OpDefinition* const definition = find_definition(name);
  if (definition == nullptr) throw MessageError(fmt::format("message names an unknown op '{}'", name));
  OpCall call;
  call.kind = definition->kind();
  std::list<std::string> texts;
  const std::vector<NamedValue> attributes = from.list([&] { return get_attribute(from, texts); });
  call.attributes = make_attributes(call.kind, attributes);
  call.math.accumulate = from.get<DType>();
  call.math.inputs = from.get<Math::Inputs>();
  call.math.fast_accumulation = from.get_bool();
  call.math.split_k_in_output = from.get_bool();
  call.math.approximate_tanh = from.get_bool();
  call.inputs = get_ids(from);
  call.outputs = get_ids(from);
  call.label = from.text();
  call.phase = from.get<Phase>();
  call.group = get_group(from);
  call.held = get_group(from);
  return call;
}

void put_device(MessageWriter& to, const DeviceInfo& device) {
  to.put(device.kind);
  to.put(device.name);
  to.put(device.units);
  to.put(device.memory_bytes);
  to.put(device.available_bytes);
  to.put(device.cache_bytes);
  put_pairs(to, device.properties);
  put_pairs(to, device.libraries);
}

DeviceInfo get_device(MessageReader& from) {
  DeviceInfo device;
  device.kind = from.text();
  device.name = from.text();
  device.units = from.get<int>();
  device.memory_bytes = from.get<std::int64_t>();
  device.available_bytes = from.get<std::int64_t>();
  device.cache_bytes = from.get<std::int64_t>();
  device.properties = get_pairs(from);
  device.libraries = get_pairs(from);
  return device;
}

}  // namespace gpubench

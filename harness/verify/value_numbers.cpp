#include "harness/verify/determinism_ways.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "harness/core/hash.h"
#include "reference/ops/collective.h"

namespace gpubench {
namespace {

// Whether all members get equal results.
bool is_equal_on_all_ranks(const OpKind& kind) {
  return kind == all_reduce_kind || kind == all_gather_kind || kind == broadcast_kind;
}

std::uint64_t shape_number(const TensorSpec& spec, std::uint64_t number) {
  number = hash_at(number, static_cast<std::uint64_t>(spec.dtype));
  for (const std::int64_t extent : spec.shape.extents()) number = hash_at(number, static_cast<std::uint64_t>(extent));
  return number;
}

}  // namespace

std::uint64_t source_number(const TensorSpec& spec) {
  std::uint64_t number = hash(spec.global_name());
  for (const AxisSpread& spread : spec.placement.spread) {
    for (const int part : {static_cast<int>(spread.kind), spread.tensor_axis, spread.part, spread.parts})
      number = hash_at(number, static_cast<std::uint64_t>(part));
  }
  return shape_number(spec, number);
}

ValueNumbers::ValueNumbers(const Program& program, const std::map<std::string, std::uint64_t>& sources)
    : program_(program), numbers_(program.values().size()) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const Value& value = program.values()[i];
    if (!value.source || value.part_of) continue;  // read() numbers parts
    const auto given = sources.find(std::string(value.spec.global_name()));
    numbers_[i] = given == sources.end() ? source_number(value.spec) : given->second;
  }
  for (const OpCall& call : program.ops()) {
    const std::uint64_t number = of_op(call);
    const std::size_t members = static_cast<std::size_t>(std::max(call.group.size(), 1));
    const std::size_t of_each = call.outputs.size() / members;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const bool alike = is_equal_on_all_ranks(call.kind) && of_each > 0 && of_each * members == call.outputs.size();
      const ValueId id = call.outputs[i];
      numbers_[static_cast<std::size_t>(id.index)] =
          shape_number(program.spec(id), hash_at(number, alike ? i % of_each : i));
    }
  }
}

std::uint64_t ValueNumbers::of_op(const OpCall& call) const {
  std::uint64_t number = hash(call.attributes.to_string(), hash(call.kind.name));
  const Math& math = call.math;
  for (const int part :
       {static_cast<int>(math.accumulate), static_cast<int>(math.inputs), static_cast<int>(math.fast_accumulation),
        static_cast<int>(math.split_k_in_output), static_cast<int>(math.approximate_tanh)})
    number = hash_at(number, static_cast<std::uint64_t>(part));
  for (const ValueId id : call.inputs) number = hash_at(number, read(id));
  return number;
}

// Also numbers values without a producer: a view, or a value made of parts.
std::uint64_t ValueNumbers::read(ValueId id) const {
  if (const auto& own = numbers_[static_cast<std::size_t>(id.index)]) return *own;
  const Value& value = program_.value(id);
  std::uint64_t number = shape_number(value.spec, static_cast<std::uint64_t>(value.offset_bytes));
  for (const ValueId other : program_.values_in(value.storage)) {
    if (const auto& written = numbers_[static_cast<std::size_t>(other.index)]) number = hash_at(number, *written);
  }
  return number;
}

}  // namespace gpubench

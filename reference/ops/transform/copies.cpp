#include "reference/ops/transform/copies.h"

namespace gpubench {

std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::vector<bool>& drop) {
  std::vector<ValueId> ids;
  const auto copied = [&ids](ValueId id) { return ids.at(static_cast<std::size_t>(id.index)); };
  for (const Value& value : from.values()) {
    if (!drop.empty() && drop[ids.size()]) {
      ids.emplace_back();
      continue;
    }
    TensorSpec spec = value.spec;
    edit(spec);
    if (value.updates) {
      ids.push_back(to.update(copied(*value.updates), spec.name));
    } else if (value.part_of) {
      const std::int64_t distance = value.offset_bytes - from.value(*value.part_of).offset_bytes;
      const auto element = static_cast<std::int64_t>(size_of(value.spec.dtype));
      ids.push_back(to.part(copied(*value.part_of), std::move(spec), distance / element));
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
  (void)copy_values(program, wide, [](TensorSpec& spec) {  // under the same ids
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

}  // namespace gpubench

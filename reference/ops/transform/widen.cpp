#include "reference/ops/transform/widen.h"

namespace gpubench {
namespace {

TensorSpec widened(TensorSpec spec) {
  if (is_float(spec.dtype)) spec.dtype = DType::f64;
  return spec;
}

}  // namespace

Program widen(const Program& program) {
  Program wide;
  for (const Value& value : program.values()) {
    if (value.updates) {
      wide.update(*value.updates, value.spec.name);
    } else if (value.part_of) {
      const std::int64_t distance = value.offset_bytes - program.value(*value.part_of).offset_bytes;
      wide.part(*value.part_of, widened(value.spec), distance / static_cast<std::int64_t>(size_of(value.spec.dtype)));
    } else if (value.source) {
      wide.add(widened(value.spec));
    } else {
      wide.reserve(widened(value.spec));
    }
  }
  for (OpCall op : program.ops()) {
    op.math = Math{.accumulate = DType::f64};  // no rounding of inputs either
    wide.begin(op.phase);
    wide.append(std::move(op));
  }
  wide.begin(Phase::timed);
  return wide;
}

}  // namespace gpubench

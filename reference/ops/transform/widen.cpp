#include "reference/ops/transform/widen.h"

#include "reference/ops/transform/copy_values.h"

namespace gpubench {
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

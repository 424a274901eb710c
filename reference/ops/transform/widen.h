// The same program in fp64: what it would compute without rounding, for end-to-end comparisons.
#pragma once

#include "harness/core/program.h"

namespace gpubench {

/// `program` with every floating-point tensor stored as f64 and every op accumulating in f64; integers stay. Values,
/// ops and their indices correspond one to one.
[[nodiscard]] Program widen(const Program& program);

}  // namespace gpubench

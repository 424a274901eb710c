// The def_hash of records: what a case means, its data included.
#pragma once

#include <string>

#include "harness/plan/plan.h"

namespace gpubench {

/// 16 hexadecimal digits of definition_digest() and of what fill() writes for each kind of fill into each type: two
/// reports whose cases of one id differ here have measured different work, or the same on other data.
[[nodiscard]] std::string definition_hash(const PlannedCase& planned);

}  // namespace gpubench

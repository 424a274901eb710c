// The list of all suites: the only place where they are named together.
#pragma once

#include <span>

#include "harness/core/workload.h"

namespace gpubench {

/// Every suite in the order in which they are listed and run.
[[nodiscard]] std::span<const Suite> all_suites();

}  // namespace gpubench

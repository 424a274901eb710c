// Choosing among candidates where there is no clock.
#pragma once

#include <string>
#include <vector>

namespace gpubench::testing {

/// The implementations that the last choice was among. It fell on the one that the plan is pinned to, else on the
/// first.
[[nodiscard]] const std::vector<std::string>& last_candidates();

}  // namespace gpubench::testing

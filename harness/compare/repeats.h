// One run must not count as two: copies of a report have no noise between them, and make any difference look certain.
#pragma once

#include <span>
#include <string_view>

#include "harness/compare/invocation.h"

namespace gpubench {

/// Whether two reports are of one run: by the random ids of both; where one has none (before schema 1.3), by their
/// start and every time in them.
[[nodiscard]] bool one_run(const Invocation& a, const Invocation& b);

/// Throws UsageError, naming both files, where a run is there twice. `flag` stands before the message; may be empty.
void refuse_repeats(std::span<const Invocation> invocations, std::string_view flag);

}  // namespace gpubench

// A backend some of whose ops are somebody's own, by the C interface (harness/core/implementation.h): what that doesn't
// offer runs on the inner backend. Such ops are checked and timed like any other.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "harness/core/implementation.h"

namespace gpubench {

/// Records call its plans "impl:<name>". `implementation` must outlive the backend; `owner` keeps the inner one alive
/// where nobody else does. Throws UsageError for another version of the interface.
[[nodiscard]] std::unique_ptr<Backend> with_implementation(Backend& inner,
                                                           const gpubench_implementation& implementation,
                                                           std::unique_ptr<Backend> owner = nullptr);

}  // namespace gpubench

// A run as JUnit's XML: each planned case is a test.
#pragma once

#include <string>

#include "harness/report/report_json.h"

namespace gpubench {

/// A testsuite per suite. fail, downgraded and not_proven are failures; error is an error; unsupported, skipped and
/// unverified are skipped, with the reason. What failed tells the op, its worst element and the line that reruns it. A
/// test's time is what checking and timing it took.
[[nodiscard]] std::string junit_text(const Report& report);

}  // namespace gpubench

// What the device's sensors said while the cases ran.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Per report, where rounds have telemetry: clocks, power, temperature, the reasons of lower clocks, and on a CPU how
/// busy the machine was, along the time for which the rounds were measured, suites as bands.
///
/// A report holds the length of each round, not when it began, and rounds of the cases in memory are interleaved: here
/// they follow each other case by case. Of very many rounds those of a case, or of several, are drawn as one, with the
/// lowest and highest.
[[nodiscard]] Section device_over_time(std::span<const Side> sides);

}  // namespace gpubench::page

// What the parts of the console's text share.
#pragma once

#include <vector>

#include "harness/core/record.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// Nanoseconds per run of every sample of the valid rounds, by the clock that a summary is made of.
[[nodiscard]] std::vector<double> samples_per_run_ns(const CaseRecord& record);
/// Below so many samples a 99th percentile would be no more than the largest of them.
inline constexpr std::size_t fewest_for_p99 = 100;

[[nodiscard]] Tone tone_of(Verdict verdict);

}  // namespace gpubench

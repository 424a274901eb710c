// The summary of the rounds of a case. Pure functions of the samples, so that a reader of a report can recompute it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Median, interval, spread, drift and flags of the valid rounds; all values per run of the program. Nothing is
/// dropped. Samples of valid rounds must be finite and above 0; batch is at least 1.
[[nodiscard]] Summary summarize(std::span<const RoundRecord> rounds, std::int64_t batch);

/// log of the median time of a run (ns), of each valid round in turn.
[[nodiscard]] std::vector<double> log_round_medians(std::span<const RoundRecord> rounds, std::int64_t batch);

/// The 95% half-width of the mean log median, by Student's t; infinite where one round says nothing about the next.
[[nodiscard]] double mean_half_width(std::span<const double> log_medians);

}  // namespace gpubench

// How fast each op is at each size, each batch size and each precision.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// One chart per workload that was measured at three sizes or more: rate against the work of a run (FLOP, or bytes
/// where the rate is in bytes), log-log, a series per precision, with the published peak as a line. What was measured
/// at fewer sizes is told as bars. Cases of one rank only.
[[nodiscard]] Section throughput_by_size(std::span<const Side> sides);

/// One chart per shape that was measured at two batch sizes or more, everything else being equal.
[[nodiscard]] Section throughput_by_batch(std::span<const Side> sides);

/// The best rate of each precision, by suite, and how much of the peak that is, where it is known. Suites with a single
/// precision and no known peak are left out: there is nothing to hold their bar against.
[[nodiscard]] Section best_by_precision(std::span<const Side> sides);

}  // namespace gpubench::page

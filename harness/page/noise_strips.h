// The samples themselves, of the cases that are least and most steady.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Per report: the noisiest ranked cases, one in the middle and the steadiest, by the spread of their samples
/// (p90 - p10 over the median). Every sample is a dot, a column per round, in multiples of the case's median: two bands
/// are two modes, a slope is a drift. Rounds that were invalid are left out. Of many samples an even choice is drawn.
[[nodiscard]] Section noise_strips(std::span<const Side> sides);

}  // namespace gpubench::page

// Rate against arithmetic intensity, under the roof that memory and arithmetic make.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// One chart per precision and report: FLOP/s of every ranked case of one rank against its FLOP per compulsory byte, a
/// series per suite; the roof is min(intensity * bandwidth, peak), published where that is known, else the best
/// matrix product and the best copy or triad of the run itself. What is above the roof by more than its interval is
/// told with the reason. A precision without both ceilings is left out.
///
/// Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore
/// architectures", CACM 52(4), 2009.
[[nodiscard]] Section roofline(std::span<const Side> sides);

}  // namespace gpubench::page

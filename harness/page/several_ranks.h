// What several ranks do together: scaling of whole steps, and the bandwidth of collectives.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Where a report has the same case at several rank counts: its rate as a multiple of that at the fewest ranks, with
/// the ideal line, and the efficiency that the report tells. Ideal is as many times faster as there are more units
/// (processors, SMs): on a CPU ranks share the processors, so that more ranks have no more of them, and efficiency is
/// the speed-up itself. Virtual ranks and collectives alone never.
[[nodiscard]] Section scaling_curves(std::span<const Side> sides);

/// Bus bandwidth (nccl-tests' busbw) against message size, log-log: one chart per collective, a series per precision
/// and number of ranks, with the link's limit where it is known. Collectives that were measured at one or two sizes are
/// told as bars.
[[nodiscard]] Section bus_bandwidth(std::span<const Side> sides);

}  // namespace gpubench::page

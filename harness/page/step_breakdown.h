// Where the time of a training step goes.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// A chart per workload with a bar per ranked step of one rank, divided by kind of op: what each takes alone as a share
/// of the step. What the ops do not explain is told with its sign: gaps between launches make it positive, overlap and
/// warm caches negative.
[[nodiscard]] Section step_breakdown(std::span<const Side> sides);

}  // namespace gpubench::page

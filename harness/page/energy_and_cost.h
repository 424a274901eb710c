// What a run costs, in joules and in money.
#pragma once

#include <span>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Work per joule of every ranked case whose energy was measured, a chart per unit of work.
[[nodiscard]] Section energy(std::span<const Side> sides);

/// With a price: what a million items (tokens, images) and an exaFLOP (10^18) of whole training steps cost at the
/// measured rate; unreliable ones are counted and left out. A case of
/// several ranks on GPUs is charged a device for each; ranks on a CPU share one. Empty without a price.
[[nodiscard]] Section cost(std::span<const Side> sides, const PageOptions& options);

}  // namespace gpubench::page

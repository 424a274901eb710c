// What the gate wants of its reports before it judges them.
#pragma once

#include <span>

#include "harness/compare/gate.h"

namespace gpubench {

/// Throws UsageError for a baseline with an injected slowdown, for one run twice on a side, and for an allowed key that
/// is no fact of any report.
void require_sound_inputs(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                          const GateOptions& options);

/// Fills in what differs between the set-up of the first baseline report and all others, the noise file's included:
/// refused, allowed, noted.
void compare_setups(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                    const GateOptions& options, GateResult& result);

}  // namespace gpubench

// Rates from cost and time: the only place where work is divided by seconds.
#pragma once

#include <optional>
#include <span>

#include "harness/core/record.h"
#include "harness/core/workload.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// Rates of a case from its median. `breakdown`: its ops timed alone (empty for single-op programs); their shares and
/// the signed remainder (launch gaps make it positive, overlap and warm caches negative) are derived here.
[[nodiscard]] Derived derive(const WorkloadInfo& info, double items, const Cost& cost, const Summary& summary,
                             std::span<const OpShare> breakdown);

/// Adds what a run costs: `joules` per run, and per unit of the headline's work (a token, a FLOP, a byte).
void add_energy(Derived& derived, std::optional<double> joules, const Summary& summary);

}  // namespace gpubench

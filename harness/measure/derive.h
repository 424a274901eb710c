// What is derived from the times of a case: rates (the only place where work is divided by seconds), energy, and what
// several ranks say about each other.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// Over the samples of all valid rounds; empty where rounds are of one rank.
[[nodiscard]] std::optional<RankSpread> rank_spread(std::span<const RoundRecord> rounds);

/// "rank 1 straggles": where ranks are more than 5% apart and the same one is the slowest in more than 80% of samples;
/// "stragglers" where it is not always the same rank. None where ranks exchange in pairs: their times are those of
/// links, which are compared over all pairs (links.h).
[[nodiscard]] std::vector<std::string> straggler_flags(const RankSpread& spread);

/// Fills in RankSpread::efficiency of every case that was measured on one rank as well: items per second and unit
/// (processor, SM) relative to the one rank, which has `units_of_one` units. Between devices that is weak scaling,
/// since each rank brings its own; ranks on one processor share its units. None where either timing is unreliable
/// (timing_unreliable()).
void add_efficiency(std::span<CaseRecord> records, int units_of_one);

}  // namespace gpubench

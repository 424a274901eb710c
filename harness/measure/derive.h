// Results derived from a case's times: rates (the only place that divides work by seconds), energy, and the comparison
// of ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/workload.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// Rates of a case from its median. `breakdown`: its ops timed alone (empty for single-op programs); adds their shares
/// and the signed remainder (launch gaps make it positive, overlap and warm caches negative).
[[nodiscard]] Derived derive(const WorkloadInfo& info, double items, const Cost& cost, const Summary& summary,
                             std::span<const OpShare> breakdown);

/// Adds energy: `joules` per run, and per unit of the headline's work (a token, a FLOP, a byte).
void add_energy(Derived& derived, std::optional<double> joules, const Summary& summary);

/// Over the samples of all valid rounds; empty for rounds of one rank.
[[nodiscard]] std::optional<RankSpread> rank_spread(std::span<const RoundRecord> rounds);

/// "rank 1 straggles" if ranks are more than 5% apart and the same one is slowest in more than 80% of samples;
/// "stragglers" if it varies. None where ranks exchange in pairs: their times are those of links (links.h).
[[nodiscard]] std::vector<std::string> straggler_flags(const RankSpread& spread);

/// Sets RankSpread::efficiency of every case that was measured on one rank as well: items per second and unit
/// (processor, SM) relative to one rank, which has `units_of_one` units. Between devices this is weak scaling; ranks on
/// one processor share its units. None if either timing is unreliable (timing_unreliable()).
void add_efficiency(std::span<CaseRecord> records, int units_of_one);

}  // namespace gpubench

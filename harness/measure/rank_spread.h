// What several ranks say about each other: who is late, and what more of them gain.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Over the samples of all valid rounds; empty where rounds are of one rank.
[[nodiscard]] std::optional<RankSpread> rank_spread(std::span<const RoundRecord> rounds);

/// "rank 1 straggles": where ranks lie more than 5% apart and the same one is the slowest in more than 80% of samples;
/// "stragglers" where they lie apart and it is not always the same.
[[nodiscard]] std::vector<std::string> straggler_flags(const RankSpread& spread);

/// Fills in RankSpread::efficiency of every measured case that was measured on one rank as well: items per second and
/// unit (processor, SM) against those of the one rank, which has `units_of_one` of them. Between devices that is weak
/// scaling, as each rank brings its own; ranks on one processor share what the one has. None where either timing is
/// unreliable (reliability.h).
void add_efficiency(std::span<CaseRecord> records, int units_of_one);

}  // namespace gpubench

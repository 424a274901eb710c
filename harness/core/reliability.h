// How sure a time is, and from where on it is too unsure to build on. One rule for the console, the page, comparisons
// and exports: they ask here, whatever flags a record carries.
#pragma once

#include <optional>

#include "harness/core/record.h"

namespace gpubench {

/// A timing is unreliable from where its 95% interval reaches more than a quarter of the median to either side, on
/// average: two such times can differ by half and still be the same.
inline constexpr double most_half_width = 0.25;

/// Half the width of the 95% interval over the median: 0.04 is +-4%, as tables show it. None where nothing was timed,
/// or where a single round says nothing about the next.
[[nodiscard]] std::optional<double> half_width(const Summary& summary);

/// Whether the case was timed, and its interval is wider than most_half_width, or unknown. Such a time is shown, and
/// marked; it is no best, no roof, no part of an efficiency. The verdict is another matter: correct is correct.
[[nodiscard]] bool timing_unreliable(const Summary& summary);

/// Whether a share of the case's time says anything: a part's time over the whole's, by how far it can be off. The
/// parts have no intervals of their own and were timed in the same minutes, so they are taken for as unsure as the
/// whole: the share is off by share x half_width x sqrt(2). Nothing is left of it from 25 points (most_half_width) on.
[[nodiscard]] bool share_is_sure(double share, const Summary& whole);

/// Derived::remainder, where there is a breakdown and the sum of its shares is sure; else it is unknown.
[[nodiscard]] std::optional<double> sure_remainder(const CaseRecord& record);

/// RankSpread::exposed_communication, where the share of computing is sure and not more than all of the step by more
/// than that may be off: what computes longer than the whole step was measured in another minute. Else it is unknown.
[[nodiscard]] std::optional<double> sure_exposed(const CaseRecord& record);

/// RankSpread::efficiency of a case whose timing is reliable; add_efficiency() sees to the rank that it is against.
[[nodiscard]] std::optional<double> sure_efficiency(const CaseRecord& record);

}  // namespace gpubench

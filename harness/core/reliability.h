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

}  // namespace gpubench

// The first report against each other one.
#pragma once

#include "harness/page/ratios.h"
#include "harness/page/section.h"

namespace gpubench::page {

/// One chart per pair and suite: how many times faster the other side is, case by case (the most different ones), with
/// 95% intervals and harness/compare's words; the suite's geometric mean is a diamond. Where reports cannot be
/// compared, a notice says why.
[[nodiscard]] Section comparison_forest(const Comparisons& comparisons);

}  // namespace gpubench::page

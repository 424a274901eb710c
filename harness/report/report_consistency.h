// Whether what a report says fits together, once each of its members is what it should be.
#pragma once

#include "harness/report/reader.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// Adds every contradiction: two cases of one id, a verdict against its op checks, a summary against its samples, a
/// rate against its time, `benchmarks` and totals against the cases. `root`: the document that `report` was read from.
void check_meaning(const Report& report, const Node& root, Problems& problems);

/// The same for one case alone.
void check_case(const CaseRecord& record, const Node& node, Problems& problems);

/// What two ways to the same number may differ by: other compilers fuse other products. `scale`: of what it is made.
[[nodiscard]] bool nearly(double a, double b, double scale = 0.0);

}  // namespace gpubench

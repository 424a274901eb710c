// One case in detail: its tensors, its ops, what they cost, how they are judged.
#pragma once

#include <string>

#include "harness/plan/plan.h"
#include "harness/report/json_fwd.h"
#include "harness/report/text_table.h"

namespace gpubench {

[[nodiscard]] std::string case_detail(const PlannedCase& planned, const std::string& rerun, const ConsoleStyle& style);
[[nodiscard]] Json case_detail_json(const PlannedCase& planned, const std::string& rerun);

}  // namespace gpubench

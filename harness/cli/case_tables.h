// list and --dry-run: what there is to run, in a table or as JSON, and one case in detail.
#pragma once

#include <span>
#include <string>

#include "harness/cli/estimate.h"
#include "harness/cli/options.h"
#include "harness/plan/plan.h"
#include "harness/report/json_parser.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// The cases with label, work and memory.
[[nodiscard]] std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style);
[[nodiscard]] Json cases_json(std::span<const PlannedCase> cases);

/// The plan of a run: each case with estimates of time and memory, and their sum.
[[nodiscard]] std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores,
                                    const ConsoleStyle& style);

/// One case in detail: its tensors, its ops, what they cost, how they are judged.
[[nodiscard]] std::string case_detail(const PlannedCase& planned, const std::string& rerun, const ConsoleStyle& style);
[[nodiscard]] Json case_detail_json(const PlannedCase& planned, const std::string& rerun);

}  // namespace gpubench

// Text of cases for the verbs list and explain and for --dry-run.
#pragma once

#include <span>
#include <string>

#include "harness/core/text/text_table.h"
#include "harness/plan/plan.h"
#include "harness/report/json_parser.h"
#include "harness/run/estimate.h"

namespace gpubench {

[[nodiscard]] std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style);
[[nodiscard]] Json cases_json(std::span<const PlannedCase> cases);

/// A row per case with estimated time and memory, and their sums.
[[nodiscard]] std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores,
                                    const ConsoleStyle& style);

[[nodiscard]] std::string case_detail(const PlannedCase& planned, const std::string& rerun, const ConsoleStyle& style);
[[nodiscard]] Json case_detail_json(const PlannedCase& planned, const std::string& rerun);
/// Work by kind and by layer, memory by kind, and the memory saved and work added by each recomputation policy. The
/// memory includes reuse of buffers between ops. Nothing for a program of one op.
[[nodiscard]] std::string step_detail(const Program& program, const ConsoleStyle& style);
void add_step_detail(Json& detail, const Program& program);

}  // namespace gpubench

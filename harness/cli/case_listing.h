// What list, explain and --dry-run print of cases: a line of each, a plan, or one in detail.
#pragma once

#include <span>
#include <string>

#include "harness/core/text/text_table.h"
#include "harness/plan/plan.h"
#include "harness/report/json_parser.h"
#include "harness/run/estimate.h"

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
/// Of both, what a program of several ops is made of: work by kind and by layer, memory by kind, and what each policy
/// of recomputation would save (memory, with what ops leave reused) and cost (work). Nothing for a program of one op.
[[nodiscard]] std::string step_detail(const Program& program, const ConsoleStyle& style);
void add_step_detail(Json& detail, const Program& program);

}  // namespace gpubench

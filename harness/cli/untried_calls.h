// What an implementation under test takes and no case of a run tried: impl check lists it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "harness/plan/plan.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The calls that an implementation takes, each once: of the planned cases, and of those of the suites that are
/// Suite::only_by_name, in every precision.
struct OfferedCalls {
  struct Call {
    std::string op, recipe;
  };
  std::vector<Call> calls;
  std::map<std::string, std::vector<std::size_t>> of_cases;  ///< by id of a planned case: its calls
};

/// `takes`: whether the implementation takes an op of a program.
[[nodiscard]] OfferedCalls offered_calls(std::span<const PlannedCase> planned, std::span<const Suite> suites,
                                         const std::function<bool(const Program&, const OpCall&)>& takes);

/// "layer_norm_forward: 12 calls in f64, 12 in tf32": the calls that none of these cases makes, by op.
[[nodiscard]] std::vector<std::string> untried(const OfferedCalls& offered, const std::set<std::string>& tried_cases);

[[nodiscard]] Json to_json(const OfferedCalls& offered);
/// Throws ReadError where it is none.
[[nodiscard]] OfferedCalls read_offered_calls(const Node& node);

}  // namespace gpubench

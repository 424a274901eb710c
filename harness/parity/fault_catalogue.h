// The faults of kernels, libraries and hardware that are injected into ops and that the check must reject.
//
// Faults of calls and formulas (faults.h) are injected into the textbook, whose result is rounded once. Faults of
// stores, memory and overflowing formulas change the output of a correct backend. Special data replace the textbook's
// inputs.
//
// Each fault is also tried on the data of the additional launches of every run (exact_data.h,
// OpDefinition::revealing_data); it counts as seen if any of them shows it. A fault within the bound looks like
// rounding: it is counted as unseen, by name. Faults of families that are `certain` must be seen everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/parity/judge.h"

namespace gpubench {

enum class CheckRule {
  none,      ///< no rule
  poison,    ///< elements that were not written
  bound,     ///< an element outside its rounding interval; NaN and infinities are outside of all others
  identical  ///< outputs that must hold the same bits differ
};
template <>
inline constexpr auto enum_names<CheckRule> = std::to_array<std::string_view>({"none", "poison", "bound", "same bits"});

struct FaultFamily {
  std::string_view name;  ///< "last of an axis left out"
  /// The tampered part: "operand", "constant", "formula", "store", "memory", "special data".
  std::string_view where;
  /// Every fault of the family that changes a number must be rejected, in every op and type.
  bool certain = false;
  CheckRule rule = CheckRule::bound;
};

[[nodiscard]] std::span<const FaultFamily> fault_families();

struct FaultTrial {
  std::size_t family = 0;  ///< index in fault_families()
  std::string name;        ///< "axis 1 of 'a'"
  /// The rule that must catch it: the family's, or bound where poison (few bits, integers) is a valid number.
  CheckRule rule = CheckRule::bound;
  CheckRule caught_by = CheckRule::none;
  /// The largest error, as error_over_bound() measures it: above 1 it is outside the bound. Infinite for NaN,
  /// infinities and poison.
  double size = 0.0;
};

struct FaultReport {
  std::vector<FaultTrial> trials;
  std::vector<std::string> alarms;  ///< rejected correct results of special data, and why
};

/// Injects every fault of the catalogue that applies into an op that was run, and judges the result. Faults that change
/// no number are left out. `clean`: the op's inputs and outputs, which must pass. Results of special data come from the
/// textbook. Runs on policy.threads threads; the calling thread calls `alive`, which may be empty, before each fault.
/// Throws ProgramError for an unknown op.
[[nodiscard]] FaultReport inject_faults(const Program& program, int op, const OpView& clean, const JudgePolicy& policy,
                                        const std::function<void()>& alive = {});

}  // namespace gpubench

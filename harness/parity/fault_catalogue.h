// The faults of kernels, libraries and hardware, injected into ops: what the check must reject.
//
// A fault of a call or another formula (faults.h) is put into the textbook. Its result, rounded once, is what a backend
// with that fault leaves that is perfect otherwise. Faults of stores, of memory and of formulas that overflow change
// what a correct backend left. Special data are given to the textbook instead. The check sees the outputs and what the
// op should have read, as in a run.
//
// Each fault is also tried on the data of the launches that every run has beside the case's own (exact_data.h,
// OpDefinition::revealing_data): seen on any is seen.
//
// A fault that moves no element out of its bound cannot be told from rounding. It is counted as unseen, by its name:
// it is what the check does not promise to find. The faults of families that are `certain` may not be unseen anywhere.
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

/// What rejects an output.
enum class CheckRule {
  none,      ///< nothing did
  poison,    ///< elements that nobody wrote
  bound,     ///< an element outside its rounding interval; NaN and infinities are outside of all others
  identical  ///< outputs that must hold the same bits do not
};
template <>
inline constexpr auto enum_names<CheckRule> = std::to_array<std::string_view>({"none", "poison", "bound", "same bits"});

struct FaultFamily {
  std::string_view name;  ///< "last of an axis left out"
  /// The tampered part: "operand", "constant", "formula", "store", "memory", "special data".
  std::string_view where;
  /// Every fault of the family that changes a number at all must be rejected, in every op and type.
  bool certain = false;
  CheckRule rule = CheckRule::bound;
};

/// In the order of the table.
[[nodiscard]] std::span<const FaultFamily> fault_families();

/// One fault in one op, and what became of it.
struct FaultTrial {
  std::size_t family = 0;  ///< index in fault_families()
  std::string name;        ///< "axis 1 of 'a'"
  CheckRule rule =
      CheckRule::bound;  ///< that must catch it: the family's, but the poison of few bits or an integer is a number
  CheckRule caught_by = CheckRule::none;
  /// The largest error that it makes, as error_over_bound() measures it: above 1 it is outside the bound. Infinite for
  /// NaN, infinities and poison.
  double size = 0.0;
};

struct FaultReport {
  std::vector<FaultTrial> trials;
  std::vector<std::string> alarms;  ///< right results of special data that were rejected, and why
};

/// Puts every fault of the catalogue that applies into an op that was run, and judges what it leaves; those that change
/// no number are left out. `clean`: what the op read and wrote; it must pass. What it makes of special data is the
/// textbook's. Runs on policy.threads threads; the calling one calls `alive`, which may be empty, before each fault.
/// Throws ProgramError for an unknown op.
[[nodiscard]] FaultReport inject_faults(const Program& program, int op, const OpView& clean, const JudgePolicy& policy,
                                        const std::function<void()>& alive = {});

}  // namespace gpubench

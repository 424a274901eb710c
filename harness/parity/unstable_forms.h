// Outputs of formulas that are right on paper and cancel, overflow or saturate: faults for fault_catalogue.h, which the
// usual data of a case may not show.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {

struct UnstableForm {
  std::string_view name;  ///< "variance as E[x^2] - E[x]^2"
  std::vector<HostTensor> left;
};

/// The forms of an op, each with its outputs for these inputs; `right`: the correct ones. Computed in the call's
/// arithmetic. Outputs that depend on an exponential that overflows, or on a sum of 0, are NaN; a variance that cancels
/// changes the reciprocal deviation alone.
[[nodiscard]] std::vector<UnstableForm> unstable_forms(const OpCall& call, std::span<const HostTensor> inputs,
                                                       std::span<const HostTensor> right);

}  // namespace gpubench

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

/// The forms of an op, each with the outputs that it leaves of these inputs; `right`: those that are right. Computed in
/// the call's arithmetic. Where an exponential overflows, or a sum of them is 0, outputs that depend on it are NaN; of
/// a variance that cancels, the reciprocal deviation shows it.
[[nodiscard]] std::vector<UnstableForm> unstable_forms(const OpCall& call, std::span<const HostTensor> inputs,
                                                       std::span<const HostTensor> right);

}  // namespace gpubench

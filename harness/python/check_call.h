// The check of one op call given through the C interface, with tensors by operand name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/core/implementation.h"
#include "harness/parity/judge.h"

namespace gpubench {

/// Throws UsageError with the nearest name.
[[nodiscard]] const OpDefinition& definition_of(std::string_view op);

/// The optional inputs that a boolean attribute of the op requires: "bias" of gemm requires bias, "scaled" dloss. Empty
/// for other attributes.
[[nodiscard]] std::vector<std::string> inputs_of_switch(const OpKind& kind, std::string_view attribute);

struct CheckedCall {
  OpParity parity;
  std::string rule;  ///< bound of the output with the worst element, with its numbers; empty: no worst element
};
/// Judges the call's outputs. Attributes that require an input are on if it is given. Throws UsageError for an unknown
/// name or type, a missing operand, and a tensor without elements, without memory or not on the host; ProgramError for
/// shapes and types that the op's builder rejects.
[[nodiscard]] CheckedCall check_call(const gpubench_call& call, const JudgePolicy& policy);

}  // namespace gpubench

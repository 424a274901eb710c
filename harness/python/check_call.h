// The check of one op call that somebody else made: tensors by operand name, as the C interface describes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/core/implementation.h"
#include "harness/parity/judge.h"

namespace gpubench {

/// The definition of that name. Throws UsageError with the nearest names.
[[nodiscard]] const OpDefinition& definition_of(std::string_view op);

/// The optional inputs that a switch among the op's attributes asks for: bias of gemm's "bias", dloss of "scaled". None
/// of an attribute that is no switch.
[[nodiscard]] std::vector<std::string> inputs_of_switch(const OpKind& kind, std::string_view attribute);

struct CheckedCall {
  OpParity parity;
  std::string rule;  ///< the bound of the output with the worst element, with its numbers; empty where there is none
};
/// Judges the call's outputs. Switches that ask for an input are on where it is given. Throws UsageError for what
/// cannot be a call of its op (an unknown name, a missing operand, a type, a tensor without elements or memory, or not
/// on the host), ProgramError for shapes and types that the op's builder refuses.
[[nodiscard]] CheckedCall check_call(const gpubench_call& call, const JudgePolicy& policy);

}  // namespace gpubench

// Every op's builder under one signature: for calls that come as data (operand names, attributes, tensors), not as C++.
#pragma once

#include <span>

#include "harness/core/program.h"

namespace gpubench {

/// Appends a call of this kind by the op's own builder, with these attributes, math, inputs (in the order that the op
/// declares) and label. `outputs`: the specs that its outputs must have. They decide what builders leave open: the
/// image of a convolution's gradient, the rows of a table's, the type of a product. Returns the appended call.
/// Throws ProgramError where the builder refuses an input or an attribute, where the attributes do not fit the
/// operands, for an output of another shape or type, and for collectives, whose tensors belong to several ranks.
const OpCall& append_call(Program& program, const OpCall& call, std::span<const TensorSpec> outputs);

}  // namespace gpubench

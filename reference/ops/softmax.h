// Softmax over the last axis, and its gradient. Goodfellow, Bengio, Courville, Deep Learning (2016), 6.2.2.3.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// x [..., n] -> y, as x: exp(x - m) / sum exp(x - m), m the largest of the row. A row with a NaN is all NaN.
inline constexpr OpKind softmax_forward_kind{"softmax_forward", "x", "y"};
/// y, dy [..., n] -> dx = y (dy - sum y dy); reads y as given.
inline constexpr OpKind softmax_backward_kind{"softmax_backward", "y dy", "dx"};

ValueId softmax_forward(Program& program, const Math& math, std::string label, ValueId x);
ValueId softmax_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy);

}  // namespace gpubench

// Softmax over the last axis, and its gradient. Goodfellow, Bengio, Courville, Deep Learning (2016), 6.2.2.3.
#pragma once

#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind softmax_forward_kind{"softmax_forward", "x", "y", {}, R"(
Softmax over the last axis.
x, y: [..., n]

y = exp(x - m) / sum exp(x - m), m the largest of the row. A row with a NaN is all NaN.

Source: Goodfellow, Bengio, Courville, Deep Learning (2016), 6.2.2.3)"};

inline constexpr OpKind softmax_backward_kind{"softmax_backward", "y dy", "dx", {}, R"(
The gradient of softmax_forward; reads y as given.
y, dy, dx: [..., n]

dx = y (dy - sum y dy))"};

ValueId softmax_forward(Program& program, const Math& math, std::string label, ValueId x);
ValueId softmax_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy);

}  // namespace gpubench

// What gelu means: values, slopes and error bounds, for the op itself and for the epilogues of gemm.
#pragma once

#include <string>

#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"

namespace gpubench {

/// gelu(x), and how far arithmetic of unit roundoff `u` may be off: six ulps of the result, three of the input, and the
/// cancellation of 1 + tanh. `tanh_error`: what the tanh itself may be off by beyond that, relative to its value.
[[nodiscard]] Expected gelu_value(GeluForm form, double x, double u, double tanh_error = 0.0);
/// gelu'(x) and its bound.
[[nodiscard]] Expected gelu_slope(GeluForm form, double x, double u, double tanh_error = 0.0);

/// What `math` declares of the tanh: 2^-11 with Math::approximate_tanh, the largest relative error that the PTX manual
/// gives for tanh.approx.f32; else 0.
[[nodiscard]] double tanh_error_of(const Math& math);

/// The bounds of both in words, for OpDefinition::bound(); `x` names the argument, y is gelu of it.
[[nodiscard]] std::string gelu_value_text(GeluForm form, const std::string& x, const Math& math);
[[nodiscard]] std::string gelu_slope_text(GeluForm form, const std::string& x, const Math& math);

}  // namespace gpubench

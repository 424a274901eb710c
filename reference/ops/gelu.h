// The Gaussian error linear unit and its derivative. Hendrycks and Gimpel, arXiv 1606.08415.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind gelu_forward_kind{"gelu_forward", "x", "y"};
inline constexpr OpKind gelu_backward_kind{"gelu_backward", "x dy", "dx"};

/// tanh: x/2 (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3))), GPT-2's; erf: x/2 (1 + erf(x/sqrt 2)).
enum class GeluForm { tanh, erf };

/// forward: x -> y. backward: x, dy -> dx. All the same shape.
struct Gelu {
  GeluForm form = GeluForm::tanh;
  static void visit(auto&& attribute) { attribute("form", &Gelu::form, AsWord{"tanh", "erf"}); }
};

ValueId gelu_forward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x);
ValueId gelu_backward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x,
                      ValueId dy);

}  // namespace gpubench

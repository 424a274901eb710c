// Elementwise ops: n tensors of one shape in, m of the same shape out. A row of a repeated input [..., n] serves
// several consecutive rows of the others: one vector for all tokens of a sample. Backends have one kernel for all these
// ops, given the function of the elements, which pointwise_textbook.cpp defines.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct Triad {
  double factor = 3.0;
  static void visit(auto&& attribute) { attribute("factor", &Triad::factor); }
};
struct Scale {
  double factor = 1.0;
  static void visit(auto&& attribute) { attribute("factor", &Scale::factor); }
};
/// tanh: x/2 (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3))), GPT-2's; erf: x/2 (1 + erf(x/sqrt 2)).
enum class GeluForm { tanh, erf };
struct Gelu {
  GeluForm form = GeluForm::tanh;
  static void visit(auto&& attribute) { attribute("form", &Gelu::form, AsWord{"tanh", "erf"}); }
};

inline constexpr OpKind multiply_kind{"multiply", "a b", "y", {}, R"(
The product of two tensors, element by element.
a, y: [..., n]
b: as a, or fewer rows, each for equally many consecutive rows of a

y = a b)"};

inline constexpr OpKind modulate_forward_kind{"modulate_forward", "x scale shift", "y", {}, R"(
The scale and shift of adaptive layer norm.
x, y: [..., n]
scale, shift: [..., n] of fewer rows, each for equally many consecutive rows of x

y = x (1 + scale) + shift

Source: Peebles and Xie, arXiv 2212.09748)"};

inline constexpr OpKind modulate_backward_kind{"modulate_backward", "dy scale", "dx", {}, R"(
The gradient of modulate_forward's x.
dy, dx: [..., n]
scale: [..., n] of fewer rows, each for equally many consecutive rows of dy

dx = dy (1 + scale)
The gradients of scale and shift are column_sums of dy x and of dy.)"};

inline constexpr OpKind triad_kind{"triad", "b c", "y", defaults_of<Triad>, R"(
STREAM's triad.
b, c, y: any shape, alike

y = b + factor c

Source: McCalpin 1995)"};

inline constexpr OpKind scale_kind{"scale", "x", "y", defaults_of<Scale>, R"(
A tensor times a constant.
x, y: any shape, alike

y = factor x)"};

inline constexpr OpKind add_kind{"add", "a b", "y", {}, R"(
The sum of two tensors.
a, b, y: any shape, alike

y = a + b)"};

inline constexpr OpKind cast_kind{"cast", "x", "y", {}, R"(
A tensor in another type.
x, y: any shape, alike

y = x rounded once to y's type)"};

inline constexpr OpKind gelu_forward_kind{"gelu_forward", "x", "y", defaults_of<Gelu>, R"(
The Gaussian error linear unit.
x, y: any shape, alike

form tanh: y = x/2 (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3))), GPT-2's; form erf: y = x/2 (1 + erf(x/sqrt 2))

Source: Hendrycks and Gimpel, arXiv 1606.08415)"};

inline constexpr OpKind gelu_backward_kind{"gelu_backward", "x dy", "dx", defaults_of<Gelu>, R"(
The gradient of gelu_forward.
x, dy, dx: any shape, alike

dx = dy gelu'(x), of the forward's form)"};

inline constexpr OpKind relu_forward_kind{"relu_forward", "x", "y", {}, R"(
The rectified linear unit.
x, y: any shape, alike

y = x, or 0 where x is negative)"};

inline constexpr OpKind relu_backward_kind{"relu_backward", "y dy", "dx", {}, R"(
The gradient of relu_forward, which needs no mask beside y.
y, dy, dx: any shape, alike

dx = 0 where y <= 0, else dy)"};

inline constexpr OpKind silu_forward_kind{"silu_forward", "x", "y", {}, R"(
The sigmoid-weighted linear unit, also called swish.
x, y: any shape, alike

y = x / (1 + exp(-x))

Source: Elfwing, Uchibe, Doya, arXiv 1702.03118)"};

inline constexpr OpKind silu_backward_kind{"silu_backward", "x dy", "dx", {}, R"(
The gradient of silu_forward.
x, dy, dx: any shape, alike

dx = dy silu'(x), silu'(x) = s (1 + x (1 - s)), s = 1 / (1 + exp(-x)))"};

inline constexpr OpKind squared_relu_forward_kind{"squared_relu_forward", "x", "y", {}, R"(
The square of the rectifier. A NaN spreads.
x, y: any shape, alike

y = max(0, x)^2

Source: So et al., arXiv 2109.08668)"};

inline constexpr OpKind squared_relu_backward_kind{"squared_relu_backward", "x dy", "dx", {}, R"(
The gradient of squared_relu_forward.
x, dy, dx: any shape, alike

dx = 0 where x <= 0, else 2 x dy)"};

inline constexpr OpKind swiglu_forward_kind{"swiglu_forward", "gate up", "y", {}, R"(
The gated unit of Llama's feed-forward layer.
gate, up, y: any shape, alike

y = silu(gate) up

Source: Shazeer, arXiv 2002.05202)"};

inline constexpr OpKind swiglu_backward_kind{"swiglu_backward", "gate up dy", "dgate dup", {}, R"(
The gradients of swiglu_forward.
gate, up, dy, dgate, dup: any shape, alike

dgate = dy up silu'(gate), dup = dy silu(gate))"};

inline constexpr OpKind pointwise_kinds[] = {add_kind,
                                             cast_kind,
                                             gelu_backward_kind,
                                             gelu_forward_kind,
                                             modulate_backward_kind,
                                             modulate_forward_kind,
                                             multiply_kind,
                                             relu_backward_kind,
                                             relu_forward_kind,
                                             scale_kind,
                                             silu_backward_kind,
                                             silu_forward_kind,
                                             squared_relu_backward_kind,
                                             squared_relu_forward_kind,
                                             swiglu_backward_kind,
                                             swiglu_forward_kind,
                                             triad_kind};

[[nodiscard]] constexpr bool is_pointwise(const OpKind& kind) {
  return std::ranges::find(pointwise_kinds, kind) != std::end(pointwise_kinds);
}

// Builders. Results have the shape of the first operand, and its type except for cast. All throw ProgramError naming
// the tensor whose shape or type does not fit.
ValueId triad(Program& program, const Triad& attributes, const Math& math, std::string label, ValueId b, ValueId c);
ValueId scale(Program& program, const Scale& attributes, const Math& math, std::string label, ValueId x);
ValueId add(Program& program, const Math& math, std::string label, ValueId a, ValueId b);
ValueId multiply(Program& program, const Math& math, std::string label, ValueId a, ValueId b);
ValueId modulate_forward(Program& program, const Math& math, std::string label, ValueId x, ValueId scale,
                         ValueId shift);
ValueId modulate_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId scale);
ValueId cast(Program& program, DType to, std::string label, ValueId x);
ValueId gelu_forward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x);
ValueId gelu_backward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x,
                      ValueId dy);
ValueId relu_forward(Program& program, const Math& math, std::string label, ValueId x);
ValueId relu_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy);
ValueId silu_forward(Program& program, const Math& math, std::string label, ValueId x);
ValueId silu_backward(Program& program, const Math& math, std::string label, ValueId x, ValueId dy);
ValueId squared_relu_forward(Program& program, const Math& math, std::string label, ValueId x);
ValueId squared_relu_backward(Program& program, const Math& math, std::string label, ValueId x, ValueId dy);
ValueId swiglu_forward(Program& program, const Math& math, std::string label, ValueId gate, ValueId up);
struct SwigluBackward {
  ValueId dgate, dup;
};
/// `into`: reserved for dgate and dup (parts of a packed gradient); default: row-major.
SwigluBackward swiglu_backward(Program& program, const Math& math, std::string label, ValueId gate, ValueId up,
                               ValueId dy, const std::optional<SwigluBackward>& into = {});

}  // namespace gpubench

// Each op is a struct with FLOP, bound, function of the elements, and gradient. Each operation has one u. Constant
// factors are doubles that a backend rounds once to its arithmetic type; the bound includes that error.
#include "reference/ops/shared_textbook.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <type_traits>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/range_data.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

constexpr std::size_t operands(std::string_view names) {
  std::size_t count = 1;
  for (const char c : names) count += c == ' ' ? 1 : 0;
  return count;
}

/// The place of y's element `element` in an input that may be repeated.
std::int64_t place_in(const TensorView& input, std::int64_t element, const Shape& y) {
  const std::int64_t count = y.elements() / input.shape().elements();
  return count == 1 ? element : element / (y[-1] * count) * y[-1] + element % y[-1];
}

struct Range {
  std::string_view input;
  RevealingData::Input (*data)(std::size_t index, const TensorSpec& x);
};

constexpr Range full_range{"x", [](std::size_t index, const TensorSpec& x) { return wide_range(index, x); }};
constexpr Range hundreds{"x", [](std::size_t index, const TensorSpec&) { return up_to_100(index); }};
// The gate's range leaves room for the other operands, which multiply it.
constexpr Range gate_range{"gate", [](std::size_t index, const TensorSpec& x) { return wide_range(index, x, 8); }};

/// Op has: `kind`; `textbook_flop` (fp64 operations per element, an exponential as sixteen); `flop(call)` per element;
/// `bound(call, output)`; a constructor from a call; operator()(elements of the inputs), which returns one Expected or
/// one per output; optionally `gradient(program, call, tape, dy)` and, if it may overflow or saturate, `range`
/// (revealing data and the input that takes them).
template <class Op>
class Pointwise final : public OpDefinition {
 public:
  OpKind kind() const override { return Op::kind; }
  Cost cost(const CallSpecs& op) const override {
    const double elements = elements_of(op.outputs[0]);
    return {Op::flop(op.call) * elements, op.bytes()};
  }
  CheckUnits units(const CallSpecs& op, int) const override {
    return element_units(op.outputs[0].shape, Op::textbook_flop);
  }
  std::string bound(const CallSpecs& op, int output) const override {
    if constexpr (requires { Op::bound(op.inputs[0], op.outputs[0]); }) return Op::bound(op.inputs[0], op.outputs[0]);
    if constexpr (requires { Op::bound(op.call, output); }) return bound_text(Op::bound(op.call, output), op.call.math);
  }
  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    constexpr std::size_t inputs = gpubench::operands(Op::kind.inputs);
    std::array<TensorView, inputs> views;
    std::copy_n(operands.inputs.begin(), inputs, views.begin());
    const Op op(operands.call);
    const auto judge = [&](std::int64_t, const std::array<double, inputs>& in) {
      if constexpr (std::is_same_v<decltype(op(in)), Expected>) {
        return op(in);
      } else {
        return op(in)[static_cast<std::size_t>(output)];
      }
    };
    const auto is_whole = [&](const TensorView& view) {
      return view.shape().elements() == operands.outputs[0].shape.elements();
    };
    if (std::all_of(views.begin(), views.end(), is_whole)) return judge_elements<inputs>(views, wanted, judged, judge);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::array<double, inputs> in;
      for (std::size_t k = 0; k < inputs; ++k)
        in[k] = views[k][place_in(views[k], wanted[i], operands.outputs[0].shape)];
      judged[i] = judge(wanted[i], in);
    }
  }
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    if constexpr (requires { Op::range; }) {
      const std::size_t index = *position_of(Op::kind.inputs, op.call.attributes, Op::range.input);
      if (has_ranges(op.inputs[index].dtype)) return {{"a wide range", {Op::range.data(index, op.inputs[index])}}};
    }
    return {};
  }
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    if constexpr (requires(ValueId dy) { Op::gradient(program, call, tape, dy); }) {
      const auto dy = incoming_gradient(call, tape, call.outputs[0]);
      if (dy) Op::gradient(program, call, tape, *dy);
    } else {
      OpDefinition::derivative(program, call, tape);
    }
  }
};

double representation_error(double constant, const Math& math) {
  return std::fabs(constant - round_to(math.accumulate, constant));
}

// Bit for bit, or rounded once.
struct CastOp {
  static constexpr OpKind kind = cast_kind;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 0.0; }
  static std::string bound(const TensorSpec& x, const TensorSpec& y) {
    return y.dtype == x.dtype ? std::string(exact_bound) : "exact, rounded once to " + std::string(name(y.dtype));
  }
  explicit CastOp(const OpCall&) {}
  Expected operator()(const std::array<double, 1>& in) const { return moved(in[0]); }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId x = call.inputs[0];
    if (!tape.wanted(x)) return;
    tape.contribute(x, cast(program, program.spec(x).dtype, tape.label(call, "backward"), dy));
  }
};

struct Arithmetic {
  Math math;
  double u;
  explicit Arithmetic(const OpCall& call) : math(call.math), u(accumulator_roundoff(call.math)) {}
};

struct AddOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = add_kind;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 1.0; }
  static std::string bound(const OpCall&, int) { return "u |y|"; }
  Expected operator()(const std::array<double, 2>& in) const {
    const double y = in[0] + in[1];
    return {y, u * std::fabs(y)};
  }
  static void gradient(Program&, const OpCall& call, GradientTape& tape, ValueId dy) {
    for (const ValueId operand : call.inputs) {
      if (tape.wanted(operand)) tape.contribute(operand, dy);
    }
  }
};

// `gradient`: of the full shape, summed over repeats.
void contribute_repeated(Program& program, const OpCall& call, GradientTape& tape, ValueId input, const char* label,
                         ValueId gradient) {
  if (program.spec(input).shape.elements() < program.spec(gradient).shape.elements())
    gradient = column_sum(program, call.math, tape.label(call, label), gradient, tape.destination(input));
  tape.contribute(input, gradient);
}

struct MultiplyOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = multiply_kind;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 1.0; }
  static std::string bound(const OpCall&, int) { return "u |y|"; }
  Expected operator()(const std::array<double, 2>& in) const {
    const double y = in[0] * in[1];
    return {y, u * std::fabs(y)};
  }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId a = call.input("a"), b = call.input("b");
    if (tape.wanted(a)) tape.contribute(a, multiply(program, call.math, tape.label(call, "backward"), dy, b));
    if (!tape.wanted(b)) return;
    contribute_repeated(program, call, tape, b, "backward_b",
                        multiply(program, call.math, tape.label(call, "products"), dy, a));
  }
};

struct ModulateForwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = modulate_forward_kind;
  static constexpr double textbook_flop = 6.0;
  static double flop(const OpCall&) { return 3.0; }
  static std::string bound(const OpCall&, int) { return "u (2 |x (1 + scale)| + |y|)"; }
  Expected operator()(const std::array<double, 3>& in) const {
    const double product = in[0] * (1.0 + in[1]), y = product + in[2];
    return {y, u * (2.0 * std::fabs(product) + std::fabs(y))};
  }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId x = call.input("x"), scale = call.input("scale"), shift = call.input("shift");
    if (tape.wanted(x))
      tape.contribute(x, modulate_backward(program, call.math, tape.label(call, "backward"), dy, scale));
    if (tape.wanted(scale)) {
      contribute_repeated(program, call, tape, scale, "backward_scale",
                          multiply(program, call.math, tape.label(call, "products"), dy, x));
    }
    if (tape.wanted(shift)) contribute_repeated(program, call, tape, shift, "backward_shift", dy);
  }
};

struct ModulateBackwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = modulate_backward_kind;
  static constexpr double textbook_flop = 5.0;
  static double flop(const OpCall&) { return 2.0; }
  static std::string bound(const OpCall&, int) { return "2 u |dx|"; }
  Expected operator()(const std::array<double, 2>& in) const {
    const double dx = in[0] * (1.0 + in[1]);
    return {dx, 2.0 * u * std::fabs(dx)};
  }
};

struct ScaleOp : Arithmetic {
  static constexpr OpKind kind = scale_kind;
  static constexpr double textbook_flop = 4.0;
  double factor, lost;
  static double flop(const OpCall&) { return 1.0; }
  static std::string bound(const OpCall& call, int) {
    return "u |y|" + lost_factor_text(representation_error(call.attributes.as<Scale>().factor, call.math), "x");
  }
  explicit ScaleOp(const OpCall& call)
      : Arithmetic(call), factor(call.attributes.as<Scale>().factor), lost(representation_error(factor, call.math)) {}
  Expected operator()(const std::array<double, 1>& in) const {
    const double y = factor * in[0];
    return {y, u * std::fabs(y) + lost * std::fabs(in[0])};
  }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId x = call.inputs[0];
    if (!tape.wanted(x)) return;
    const double factor = call.attributes.as<Scale>().factor;
    tape.contribute(x, scale(program, {factor}, call.math, tape.label(call, "backward"), dy));
  }
};

struct TriadOp : Arithmetic {
  static constexpr OpKind kind = triad_kind;
  static constexpr double textbook_flop = 4.0;
  double factor, lost;
  static double flop(const OpCall&) { return 2.0; }
  static std::string bound(const OpCall& call, int) {
    const double factor = call.attributes.as<Triad>().factor;
    return "u (|" + number_text(factor) + " c| + |y|)" + lost_factor_text(representation_error(factor, call.math), "c");
  }
  explicit TriadOp(const OpCall& call)
      : Arithmetic(call), factor(call.attributes.as<Triad>().factor), lost(representation_error(factor, call.math)) {}
  Expected operator()(const std::array<double, 2>& in) const {
    const double y = in[0] + factor * in[1];
    return {y, u * (std::fabs(factor * in[1]) + std::fabs(y)) + lost * std::fabs(in[1])};
  }
};

GeluForm form_of(const OpCall& call) { return call.attributes.as<Gelu>().form; }

// Operations per element, a transcendental as one: x/2 (1 + tanh(c (x + k x^3))) and the like.
struct GeluForwardOp : Arithmetic {
  static constexpr OpKind kind = gelu_forward_kind;
  static constexpr Range range = full_range;
  static constexpr double textbook_flop = 20.0;
  GeluForm form;
  double tanh_error;
  static double flop(const OpCall& call) { return form_of(call) == GeluForm::tanh ? 9.0 : 5.0; }
  static std::string bound(const OpCall& call, int) { return gelu_value_text(form_of(call), "x", call.math); }
  explicit GeluForwardOp(const OpCall& call)
      : Arithmetic(call), form(form_of(call)), tanh_error(tanh_error_of(call.math)) {}
  Expected operator()(const std::array<double, 1>& in) const { return gelu_value(form, in[0], u, tanh_error); }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId x = call.inputs[0];
    if (!tape.wanted(x)) return;
    tape.contribute(x,
                    gelu_backward(program, call.attributes.as<Gelu>(), call.math, tape.label(call, "backward"), x, dy));
  }
};

// `factor` times `of`, with `roundings` more roundings (in u).
Expected times(double factor, const Expected& of, double roundings) {
  const double product = factor * of.value;
  return {product, std::fabs(factor) * of.bound + roundings * std::fabs(product)};
}

struct GeluBackwardOp : Arithmetic {
  static constexpr OpKind kind = gelu_backward_kind;
  static constexpr Range range = hundreds;
  static constexpr double textbook_flop = 30.0;
  GeluForm form;
  double tanh_error;
  static double flop(const OpCall& call) { return form_of(call) == GeluForm::tanh ? 19.0 : 11.0; }
  static std::string bound(const OpCall& call, int) {
    return "2 u |dx| + |dy| " + gelu_slope_text(form_of(call), "x", call.math);
  }
  explicit GeluBackwardOp(const OpCall& call)
      : Arithmetic(call), form(form_of(call)), tanh_error(tanh_error_of(call.math)) {}
  Expected operator()(const std::array<double, 2>& in) const {
    return times(in[1], gelu_slope(form, in[0], u, tanh_error), 2.0 * u);
  }
};

// silu(x) = x s, with slope s (1 + x (1 - s)), s = 1 / (1 + e^-x). The quotient has five roundings; the argument of
// e^-x goes to base 2 by a rounded factor and a rounded product, 2 u |x|, of which 1 - s reaches s. An exponential,
// quotient or store may flush numbers below the smallest normal one: s, if e^-x overflows.
struct Silu {
  Expected value, slope;
  Silu(double x, const Math& math) {
    const double u = accumulator_roundoff(math), tiny = smallest_normal(math.accumulate);
    const double s = 1.0 / (1.0 + std::exp(-x));
    const double rest = 1.0 / (1.0 + std::exp(x));
    const double size = std::fabs(x);
    const double exponent = 2.0 * u * size * rest;
    value = {x * s, std::fabs(x * s) * (10.0 * u + exponent)};
    slope = {s * (1.0 + x * rest),
             u * s * (8.0 + 12.0 * rest * size + 2.0 * size) + exponent * s * std::fabs(1.0 + x * (rest - s))};
    value.bound += (1.0 + size) * tiny;
    slope.bound += (1.0 + size) * tiny;
  }
};
std::string silu_text(const std::string& x, const Math& math) {
  return "T_silu = |silu| (10 u + 2 u |" + x + "| (1 - s)) + (1 + |" + x + "|) " + flushed_text(math);
}
std::string silu_slope_text(const std::string& x, const Math& math) {
  return "(u s (8 + 12 (1 - s) |" + x + "| + 2 |" + x + "|) + 2 u |" + x + "| s (1 - s) |1 + " + x +
         " (1 - 2 s)| + (1 + |" + x + "|) " + flushed_text(math) + ")";
}

/// A subnormal product may be flushed to 0.
Expected flushed(const Expected& of, const Math& math) {
  return {of.value, of.bound + smallest_normal(math.accumulate)};
}

template <auto backward>
void gradient_from_x(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
  const ValueId x = call.inputs[0];
  if (tape.wanted(x)) tape.contribute(x, backward(program, call.math, tape.label(call, "backward"), x, dy));
}

struct SiluForwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = silu_forward_kind;
  static constexpr Range range = full_range;
  static constexpr double textbook_flop = 30.0;
  static double flop(const OpCall&) { return 4.0; }
  static std::string bound(const OpCall& call, int) { return silu_text("x", call.math); }
  Expected operator()(const std::array<double, 1>& in) const { return Silu(in[0], math).value; }
  static constexpr auto gradient = gradient_from_x<silu_backward>;
};

struct SiluBackwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = silu_backward_kind;
  static constexpr Range range = full_range;
  static constexpr double textbook_flop = 30.0;
  static double flop(const OpCall&) { return 8.0; }
  static std::string bound(const OpCall& call, int) { return "|dy| " + silu_slope_text("x", call.math) + " + u |dx|"; }
  Expected operator()(const std::array<double, 2>& in) const { return times(in[1], Silu(in[0], math).slope, u); }
};

struct ReluForwardOp {
  static constexpr OpKind kind = relu_forward_kind;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 1.0; }
  static std::string bound(const TensorSpec&, const TensorSpec&) { return "exact, a zero of either sign"; }
  explicit ReluForwardOp(const OpCall&) {}
  Expected operator()(const std::array<double, 1>& in) const { return {in[0] < 0.0 ? 0.0 : in[0]}; }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId x = call.inputs[0];
    if (tape.wanted(x))
      tape.contribute(x, relu_backward(program, call.math, tape.label(call, "backward"), call.outputs[0], dy));
  }
};

struct ReluBackwardOp {
  static constexpr OpKind kind = relu_backward_kind;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 1.0; }
  static std::string bound(const TensorSpec&, const TensorSpec&) { return "exact, a zero of either sign"; }
  explicit ReluBackwardOp(const OpCall&) {}
  Expected operator()(const std::array<double, 2>& in) const { return {in[0] <= 0.0 ? 0.0 : in[1]}; }
};

struct SquaredReluForwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = squared_relu_forward_kind;
  static constexpr Range range = hundreds;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 2.0; }
  static std::string bound(const OpCall& call, int) { return "u |y| + " + flushed_text(call.math); }
  Expected operator()(const std::array<double, 1>& in) const {
    const double x = in[0] < 0.0 ? 0.0 : in[0];
    return flushed(times(x, {x}, u), math);
  }
  static constexpr auto gradient = gradient_from_x<squared_relu_backward>;
};

struct SquaredReluBackwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = squared_relu_backward_kind;
  static constexpr Range range = hundreds;
  static constexpr double textbook_flop = 4.0;
  static double flop(const OpCall&) { return 3.0; }
  static std::string bound(const OpCall& call, int) { return "u |dx| + " + flushed_text(call.math); }
  Expected operator()(const std::array<double, 2>& in) const {
    if (in[0] <= 0.0) return {0.0};
    return flushed(times(2.0 * in[0], {in[1]}, u), math);
  }
};

struct SwigluForwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = swiglu_forward_kind;
  static constexpr Range range = gate_range;
  static constexpr double textbook_flop = 30.0;
  static double flop(const OpCall&) { return 5.0; }
  static std::string bound(const OpCall& call, int) {
    return "|up| T_silu + u |y| + " + flushed_text(call.math) + ", " + silu_text("gate", call.math);
  }
  Expected operator()(const std::array<double, 2>& in) const {
    return flushed(times(in[1], Silu(in[0], math).value, u), math);
  }
  static void gradient(Program& program, const OpCall& call, GradientTape& tape, ValueId dy) {
    const ValueId gate = call.inputs[0];
    const ValueId up = call.inputs[1];
    if (!tape.wanted(gate) && !tape.wanted(up)) return;
    // Gradients of halves of a packed product go into the packed gradient.
    std::optional<SwigluBackward> into;
    const auto is_wanted_part = [&](ValueId half) { return tape.wanted(half) && program.value(half).part_of; };
    if (is_wanted_part(gate) && is_wanted_part(up)) into = {tape.destination(gate), tape.destination(up)};
    const SwigluBackward gradients =
        swiglu_backward(program, call.math, tape.label(call, "backward"), gate, up, dy, into);
    if (tape.wanted(gate)) tape.contribute(gate, gradients.dgate);
    if (tape.wanted(up)) tape.contribute(up, gradients.dup);
  }
};

struct SwigluBackwardOp : Arithmetic {
  using Arithmetic::Arithmetic;
  static constexpr OpKind kind = swiglu_backward_kind;
  static constexpr Range range = gate_range;
  static constexpr double textbook_flop = 40.0;
  static double flop(const OpCall&) { return 11.0; }
  static std::string bound(const OpCall& call, int output) {
    const std::string rest = " + " + flushed_text(call.math);
    if (output == 1) return "|dy| T_silu + u |dup|" + rest + ", " + silu_text("gate", call.math);
    return "|dy up| " + silu_slope_text("gate", call.math) + " + 2 u |dgate|" + rest;
  }
  std::array<Expected, 2> operator()(const std::array<double, 3>& in) const {
    const Silu silu(in[0], math);
    return {flushed(times(in[2] * in[1], silu.slope, 2.0 * u), math), flushed(times(in[2], silu.value, u), math)};
  }
};

}  // namespace

Definitions pointwise_definitions() {
  return definitions_of<Pointwise<AddOp>, Pointwise<CastOp>, Pointwise<GeluBackwardOp>, Pointwise<GeluForwardOp>,
                        Pointwise<ModulateBackwardOp>, Pointwise<ModulateForwardOp>, Pointwise<MultiplyOp>,
                        Pointwise<ReluBackwardOp>, Pointwise<ReluForwardOp>, Pointwise<ScaleOp>,
                        Pointwise<SiluBackwardOp>, Pointwise<SiluForwardOp>, Pointwise<SquaredReluBackwardOp>,
                        Pointwise<SquaredReluForwardOp>, Pointwise<SwigluBackwardOp>, Pointwise<SwigluForwardOp>,
                        Pointwise<TriadOp>>();
}

// GELU, without cancellation. Bounds are function budgets in ulps (OpenCL's table), propagated by condition number
// (Hendrycks and Gimpel, arXiv 1606.08415).

namespace {

constexpr double cubic = 0.044715;  // by definition

// t of x/2 (1 + tanh t), its derivative, 1 - tanh^2 t, and |tanh t|.
struct TanhArgument {
  double t, slope, sech2, tanh;
};

TanhArgument tanh_argument(double x) {
  const double c = std::sqrt(2.0 / std::numbers::pi);
  const double t = c * (x + cubic * x * x * x);
  const double cosh = std::cosh(t);
  return {t, c * (1.0 + 3.0 * cubic * x * x), 1.0 / (cosh * cosh), std::fabs(std::tanh(t))};
}

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

// gelu(x) / x. 1 + tanh and 1 + erf would cancel for negative x.
double gate(GeluForm form, double x) {
  if (form == GeluForm::erf) return 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return 1.0 / (1.0 + std::exp(-2.0 * tanh_argument(x).t));
}

}  // namespace

// The largest relative error of tanh.approx.f32, from the PTX ISA manual.
double tanh_error_of(const Math& math) { return math.approximate_tanh ? 0x1p-11 : 0.0; }

Expected gelu_value(GeluForm form, double x, double u, double tanh_error) {
  const double y = x * gate(form, x);
  const double bound = u * (6.0 * std::fabs(y) + 3.0 * std::fabs(x));
  if (form == GeluForm::erf) return {y, bound};
  const TanhArgument a = tanh_argument(x);
  return {y, bound + u * (4.0 * std::fabs(x) * std::fabs(a.t) * a.sech2) + 0.5 * std::fabs(x) * tanh_error * a.tanh};
}

// With T = tanh t, the slope is (1 + T)/2 + x t' (1 - T^2)/2: d moves it by at most d/2 + |x| t' (|T| d + d^2/2).
Expected gelu_slope(GeluForm form, double x, double u, double tanh_error) {
  const double magnitude = std::fabs(x);
  if (form == GeluForm::erf) {
    const double density = normal_density(x);
    return {gate(form, x) + x * density, u * (4.0 + magnitude * density * (x * x + 12.0))};
  }
  const TanhArgument a = tanh_argument(x);
  const double ts = std::fabs(a.t) * a.sech2;
  const double d = tanh_error * a.tanh;
  return {gate(form, x) + 0.5 * x * a.sech2 * a.slope,
          u * (4.0 + 2.0 * magnitude * a.slope * (1.0 + 2.0 * ts) + 2.0 * ts) + 0.5 * d +
              magnitude * a.slope * (a.tanh * d + 0.5 * d * d)};
}

// t is the argument of tanh, t' its derivative, phi the density of the normal distribution.
std::string gelu_value_text(GeluForm form, const std::string& x, const Math& math) {
  const std::string magnitude = "|" + x + "|";
  if (form == GeluForm::erf) return "u (6|y| + 3" + magnitude + ")";
  const std::string exact = "u (6|y| + 3" + magnitude + " + 4" + magnitude + "|t|(1 - tanh^2 t))";
  if (!math.approximate_tanh) return exact;
  return exact + " + approximate tanh: " + magnitude + " d/2, d = " + power_text(tanh_error_of(math)) + " |tanh t|";
}

std::string gelu_slope_text(GeluForm form, const std::string& x, const Math& math) {
  const std::string magnitude = "|" + x + "|";
  if (form == GeluForm::erf) return "u (4 + " + magnitude + " phi(" + x + ") (" + x + "^2 + 12))";
  const std::string exact = "u (4 + 2" + magnitude + " t' (1 + 2r) + 2r), r = |t|(1 - tanh^2 t)";
  if (!math.approximate_tanh) return exact;
  return "(" + exact + ", + approximate tanh: d/2 + " + magnitude +
         " t' (|tanh t| d + d^2/2), d = " + power_text(tanh_error_of(math)) + " |tanh t|)";
}

}  // namespace gpubench

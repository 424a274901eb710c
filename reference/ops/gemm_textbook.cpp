// Each element: one row of op(a) times one column of op(b) in fp64, Rule G, then the epilogue's bound.
#include <algorithm>
#include <cmath>
#include <set>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/definition.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/quantize.h"
#include "reference/ops/range_data.h"
#include "reference/ops/shared_textbook.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

// Both sides of common tile edges, the first and the last index.
std::set<std::int64_t> edges(std::int64_t extent) {
  std::set<std::int64_t> result{0, extent - 1};
  for (const std::int64_t tile : {64, 128, 256}) {
    if (tile < extent) result.insert({tile - 1, tile});
  }
  return result;
}

std::vector<std::int64_t> landmarks_of(const GemmExtents& e) {
  std::set<std::int64_t> units;
  for (const std::int64_t batch : {std::int64_t{0}, e.batch - 1}) {
    const auto insert = [&](std::int64_t row, std::int64_t column) {
      units.insert((batch * e.m + row) * e.n + column);
    };
    for (const std::int64_t row : edges(e.m)) {
      for (const std::int64_t column : {std::int64_t{0}, std::min(row, e.n - 1), e.n - 1}) insert(row, column);
    }
    for (const std::int64_t column : edges(e.n)) {
      for (const std::int64_t row : {std::int64_t{0}, e.m - 1}) insert(row, column);
    }
  }
  return {units.begin(), units.end()};
}

struct GemmViews {
  const TensorView *c_in, *bias, *pre;
  double scale = 1.0;

  explicit GemmViews(const Named<TensorView>& operand)
      : c_in(operand.find("c_in")), bias(operand.find("bias")), pre(operand.find("pre")) {
    operand.each({"scale_a", "scale_b"}, [this](const TensorView& factor) { scale *= factor[0]; });
  }
};

double representation_error(double constant, DType type) { return std::fabs(constant - round_to(type, constant)); }

// z = alpha ab + beta c_in + bias: Rule G for the products, then one u per operation of the epilogue; exact if the sums
// are exact.
Expected pre_activation(const Gemm& gemm, const Math& math, const ContractionRule& rule, const GemmViews& views,
                        const ProductSum& ab, std::int64_t unit, std::int64_t column) {
  const double u = rule.u > 0.0 ? accumulator_roundoff(math) : 0.0;
  const double alpha = gemm.alpha * views.scale;
  const double scaled = alpha * ab.value;
  const double c_in = views.c_in != nullptr ? (*views.c_in)[unit] : 0.0;
  const double bias = views.bias != nullptr ? (*views.bias)[column] : 0.0;
  const bool scales = gemm.alpha != 1.0 || gemm.beta != 0.0;
  const double operations = (scales ? 2.0 : 0.0) + (gemm.bias ? 1.0 : 0.0) + (gemm.scaled ? 2.0 : 0.0);
  double bound = std::fabs(alpha) * rule.bound(ab);
  bound += operations * u * (std::fabs(scaled) + std::fabs(gemm.beta * c_in) + std::fabs(bias));
  bound += representation_error(gemm.alpha, math.accumulate) * std::fabs(views.scale * ab.value);
  bound += representation_error(gemm.beta, math.accumulate) * std::fabs(c_in);
  return {scaled + gemm.beta * c_in + bias, bound};
}

Expected with_epilogue(const Gemm& gemm, const Math& math, const Expected& z, const GemmViews& views,
                       std::int64_t unit) {
  const double u = accumulator_roundoff(math);
  const double tanh_error = tanh_error_of(math);
  if (gemm.epilogue == Gemm::Epilogue::gelu) {
    const Expected y = gelu_value(gemm.gelu_form, z.value, u, tanh_error);
    return {y.value, 1.13 * z.bound + y.bound};  // 1.13: the largest slope of gelu
  }
  if (gemm.epilogue == Gemm::Epilogue::gelu_gradient) {
    const Expected slope = gelu_slope(gemm.gelu_form, (*views.pre)[unit], u, tanh_error);
    const double dx = z.value * slope.value;
    return {dx, std::fabs(slope.value) * z.bound + std::fabs(z.value) * slope.bound + 2.0 * u * std::fabs(dx)};
  }
  return z;
}

// pre_activation()'s bound in words; C = scale_a scale_b op(a) op(b).
std::string pre_activation_bound(const Gemm& gemm, const Math& math, const ContractionRule& rule, std::int64_t k) {
  const auto factor = [](double value) { return value == 1.0 ? std::string() : number_text(std::fabs(value)) + " "; };
  std::string text = "Rule G: " + (gemm.alpha == 1.0 ? "" : factor(gemm.alpha) + "* ") + rule.formula(k);
  const bool scales = gemm.alpha != 1.0 || gemm.beta != 0.0;
  const int operations = (scales ? 2 : 0) + (gemm.bias ? 1 : 0) + (gemm.scaled ? 2 : 0);
  if (operations > 0) {
    text += " + " + (operations == 1 ? "" : std::to_string(operations) + " ") + "u (" + factor(gemm.alpha) + "|C|";
    if (gemm.beta != 0.0) text += " + " + factor(gemm.beta) + "|c_in|";
    if (gemm.bias) text += " + |bias|";
    text += ")";
  }
  text += lost_factor_text(representation_error(gemm.alpha, math.accumulate), "C");
  return text + lost_factor_text(representation_error(gemm.beta, math.accumulate), "c_in");
}

// with_epilogue()'s bound in words, for a z with bound T.
std::string epilogue_bound(const Gemm& gemm, const Math& math, int output, const std::string& pre_activation) {
  if (output != 0 || gemm.epilogue == Gemm::Epilogue::none) return pre_activation;
  const std::string given = ", T = " + pre_activation;
  if (gemm.epilogue == Gemm::Epilogue::gelu) return "1.13 T + " + gelu_value_text(gemm.gelu_form, "z", math) + given;
  return "|gelu'| T + 2 u |c| + |z| " + gelu_slope_text(gemm.gelu_form, "pre", math) + given;
}

class GemmDefinition : public DefinitionOf<gemm_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    const GemmExtents e = extents_of(op.call.attributes.as<Gemm>(), op.inputs[0].shape, op.inputs[1].shape);
    const double mnk = static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
    return {2.0 * static_cast<double>(e.batch) * mnk, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int) const override {
    const Gemm& gemm = op.call.attributes.as<Gemm>();
    const GemmExtents e = extents_of(gemm, op.inputs[0].shape, op.inputs[1].shape);
    const int strided = (gemm.transpose_a ? 1 : 0) + (gemm.transpose_b ? 0 : 1);  // operands read across their rows
    CheckUnits units;
    units.count = e.batch * e.m * e.n;
    units.flop_per_unit = (4.0 + (gemm.blocks ? 2.0 : 0.0) + strided_read_flop * strided) * static_cast<double>(e.k);
    if (units.count > 0) units.landmarks = landmarks_of(e);
    return units;
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Gemm& gemm = op.call.attributes.as<Gemm>();
    const std::int64_t k = extents_of(gemm, op.inputs[0].shape, op.inputs[1].shape).k;
    const ContractionRule rule = contraction_rule(op, gemm.blocks);
    return bound_text(epilogue_bound(gemm, op.call.math, output, pre_activation_bound(gemm, op.call.math, rule, k)),
                      op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Gemm& gemm = operands.call.attributes.as<Gemm>();
    const GemmExtents e = extents_of(gemm, operands.inputs[0].shape(), operands.inputs[1].shape());
    const Named<TensorView> operand(operands.call, operands.inputs);
    const GemmViews views(operand);
    const Math& math = operands.call.math;
    const ContractionRule rule = contraction_rule(operands, gemm.blocks);
    Lines rows(operands.inputs[0], !gemm.transpose_a, e.k, 1, 0, operand.find("blocks_a"));
    Lines columns(operands.inputs[1], gemm.transpose_b, e.k, e.n, 0, operand.find("blocks_b"));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t batch = wanted[i] / (e.m * e.n);
      const std::int64_t row = wanted[i] / e.n % e.m;
      const std::int64_t column = wanted[i] % e.n;
      const ProductSum ab = product_sum(math, rows.line(batch, row), columns.line(batch, column));
      judged[i] = pre_activation(gemm, math, rule, views, ab, wanted[i], column);
      if (output == 0) judged[i] = with_epilogue(gemm, math, judged[i], views, wanted[i]);
    }
  }

  // Along the columns, before a nonlinear epilogue. Not with blocks, whose scales vary along the same axis.
  std::vector<LinearAxis> linear_axes(const CallSpecs& op, int output) const override {
    const Gemm& gemm = op.call.attributes.as<Gemm>();
    if (gemm.blocks || (output == 0 && gemm.epilogue != Gemm::Epilogue::none)) return {};
    const int columns = op.outputs[0].shape.rank() - 1;
    const int of_b = op.inputs[1].shape.rank() - (gemm.transpose_b ? 2 : 1);
    LinearAxis axis{columns, {{1, of_b}}};
    const Named<TensorSpec> operand(op.call, op.inputs);
    if (const auto at = operand.position("c_in")) axis.operands.emplace_back(*at, columns);
    if (const auto at = operand.position("bias")) axis.operands.emplace_back(*at, 0);
    return {axis};
  }

  std::optional<Contraction> contraction(const CallSpecs& op) const override {
    const Gemm& gemm = op.call.attributes.as<Gemm>();
    if (!is_power_of_two(gemm.alpha) || (gemm.beta != 0.0 && !is_power_of_two(gemm.beta))) return {};
    const int rank = op.inputs[0].shape.rank();
    return Contraction{.a_axis = rank - (gemm.transpose_a ? 2 : 1),
                       .b_axis = rank - (gemm.transpose_b ? 1 : 2),
                       .extent = extents_of(gemm, op.inputs[0].shape, op.inputs[1].shape).k,
                       .factor = gemm.alpha,
                       .c_in_factor = gemm.beta};
  }

  // GELU's range needs a bias or pre-activation, as products are too small. The products are 0, because a sum may begin
  // with the bias and then round all that follows.
  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    if (op.call.attributes.as<Gemm>().epilogue == Gemm::Epilogue::none) return {};
    const Named<TensorSpec> operand(op.call, op.inputs);
    constexpr std::string_view name = "GELU of a wide range";
    if (const auto pre = operand.position("pre")) return {{name, {up_to_100(*pre)}}};
    if (const auto bias = operand.position("bias"))
      return {{name, {{0, [](std::int64_t) { return 0.0; }, 2}, up_to_100(*bias)}}};
    return {};
  }

  // Of the first matrix of a batch.
  std::optional<OpProduct> product(const CallSpecs& op) const override {
    const Gemm& gemm = op.call.attributes.as<Gemm>();
    if (gemm.alpha == 0.0 || gemm.epilogue == Gemm::Epilogue::gelu_gradient) return {};
    const GemmExtents e = extents_of(gemm, op.inputs[0].shape, op.inputs[1].shape);
    OpProduct product = OpProduct::of_matrices(e.m, e.n, e.k, gemm.transpose_a, gemm.transpose_b);
    product.output = gemm.epilogue == Gemm::Epilogue::gelu ? 1 : 0;
    product.factor = gemm.alpha;
    const Named<TensorSpec> operand(op.call, op.inputs);
    const auto fill = [&](std::string_view name, double value) {
      if (const auto at = operand.position(name)) product.others.push_back({*at, value, value});
    };
    for (const std::string_view name : {"c_in", "bias"}) fill(name, 0.0);
    for (const std::string_view name : {"scale_a", "scale_b"}) fill(name, 1.0);
    const auto scales = [&](std::string_view name, std::int64_t lines) -> std::optional<OpProductScales> {
      const auto at = operand.position(name);
      if (!at) return std::nullopt;
      const std::int64_t block = block_of_scale(op.inputs[*at].dtype);
      return OpProductScales{*at, Offsets({{lines, op.inputs[*at].shape[1]}}), block};
    };
    product.a_scales = scales("blocks_a", e.m);
    product.b_scales = scales("blocks_b", e.n);
    return product;
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override;
};

struct Factor {
  ValueId value;
  std::optional<ValueId> scale{};
};

// Gradients of c = alpha op(a) op(b) are gemms with transposes that follow from the forward's. The gradient of an 8-bit
// operand is that of its unscaled numbers, so scales stay with their operands.
struct GradientGemm {
  Gemm gemm;
  Factor first, second;
};

GradientGemm gradient_of_a(const Gemm& forward, const Factor& b, const Factor& dz) {
  Gemm gemm;
  gemm.alpha = forward.alpha;
  gemm.scaled = forward.scaled;
  if (forward.transpose_a) {  // da [k, m] = op(b) dz^T
    gemm.transpose_a = forward.transpose_b;
    gemm.transpose_b = true;
    return {gemm, b, dz};
  }
  gemm.transpose_b = !forward.transpose_b;  // da [m, k] = dz op(b)^T
  return {gemm, dz, b};
}

GradientGemm gradient_of_b(const Gemm& forward, const Factor& a, const Factor& dz) {
  Gemm gemm;
  gemm.alpha = forward.alpha;
  gemm.scaled = forward.scaled;
  if (forward.transpose_b) {  // db [n, k] = dz^T op(a)
    gemm.transpose_a = true;
    gemm.transpose_b = forward.transpose_a;
    return {gemm, dz, a};
  }
  gemm.transpose_a = !forward.transpose_a;  // db [k, n] = op(a)^T dz
  return {gemm, a, dz};
}

// Matrix units read 8-bit operands along the summed axis only: makes that axis dense, by a copy if needed.
Factor dense_along_sums(Program& program, const Factor& factor, bool sums_rows, const std::string& label) {
  const Shape shape = program.spec(factor.value).shape;
  const int last = shape.rank() - 1;
  const int summed = sums_rows ? last - 1 : last;
  if (program.spec(factor.value).layout.strides[static_cast<std::size_t>(summed)] == 1) return factor;
  std::vector<int> order;
  for (int axis = 0; axis <= last; ++axis) {
    if (axis != summed) order.push_back(axis);
  }
  order.push_back(summed);
  return {reorder(program, Layout::ordered(shape, order), program.unique_name(label), factor.value), factor.scale};
}

void GemmDefinition::derivative(Program& program, const OpCall& forward_call, GradientTape& tape) const {
  const OpCall call = forward_call;  // appending to the program may move the original
  const Gemm& forward = call.attributes.as<Gemm>();
  if (forward.blocks) {
    throw ProgramError("gemm: op '" + call.label + "' (" + describe(forward) +
                       ") has no derivative: its gradients sum over other axes than the blocks; expected no blocks");
  }
  if (forward.beta != 0.0 || forward.epilogue == Gemm::Epilogue::gelu_gradient) {
    throw ProgramError("gemm: op '" + call.label + "' (" + describe(forward) +
                       ") has no derivative; expected beta = 0 and no gradient epilogue");
  }
  const auto dy = incoming_gradient(call, tape, call.output("c"));
  if (!dy) return;
  ValueId dz = *dy;
  if (forward.epilogue == Gemm::Epilogue::gelu) {
    const ValueId z = call.output("z");
    if (tape.of(z)) {
      throw ProgramError("gemm: a gradient flows into the pre-activation of op '" + call.label + "'; expected none");
    }
    dz = gelu_backward(program, {forward.gelu_form}, call.math, tape.label(call, "dz"), z, *dy);
  }
  Factor a{call.input("a")}, b{call.input("b")}, gradient{dz};
  if (forward.scaled && (tape.wanted(a.value) || tape.wanted(b.value))) {
    a.scale = call.input("scale_a");
    b.scale = call.input("scale_b");
    const Quantized narrow =
        quantize_by_amax(program, tape.gradient_operand(), call.math, tape.label(call, "dz.f8"), dz);
    gradient = {narrow.values, narrow.inverse};
  }
  const auto contribute = [&](ValueId input, GradientGemm g, std::string_view suffix, bool own_destination) {
    const std::string label = tape.label(call, suffix);
    if (g.gemm.scaled) {
      g.first = dense_along_sums(program, g.first, g.gemm.transpose_a, label + ".a_turned");
      g.second = dense_along_sums(program, g.second, !g.gemm.transpose_b, label + ".b_turned");
    }
    const std::optional<ValueId> into = own_destination ? std::optional(tape.destination(input)) : std::nullopt;
    const GemmOperands scales{.scale_a = g.first.scale, .scale_b = g.second.scale};
    tape.contribute(input, gemm(program, g.gemm, call.math, label, g.first.value, g.second.value, scales, into).c);
  };
  if (tape.wanted(a.value)) contribute(a.value, gradient_of_a(forward, b, gradient), "da", true);
  // One destination per input: if a and b are the same value, the second summand gets separate storage.
  if (tape.wanted(b.value)) contribute(b.value, gradient_of_b(forward, a, gradient), "db", a.value != b.value);
  if (!forward.bias || !tape.wanted(call.input("bias"))) return;
  const ValueId bias = call.input("bias");
  tape.contribute(bias, column_sum(program, call.math, tape.label(call, "dbias"), dz, tape.destination(bias)));
}

}  // namespace

Definitions gemm_definitions() { return definitions_of<GemmDefinition>(); }

}  // namespace gpubench

// Products of matrices and what is fused into them.
#include <numeric>
#include <utility>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/gemm.h"
#include "reference/ops/quantize.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

struct Extents {
  std::int64_t m, n, k;
};
/// 8-bit and 4-bit operands have multiples of 16, along k of 32: matrix units read no others.
Extents extents_of(const VariantBuild& call) {
  if (!call.r.quantizes()) return {call.n - 2, call.n, call.n + 2};
  const std::int64_t n = 16 * (call.n / 16 + 3);
  return {n + 32, n, n + 48};
}

struct Operand {
  ValueId values;
  std::optional<ValueId> inverse, blocks;  ///< of 8-bit and 4-bit values
};
/// A matrix or a batch of matrices in the recipe's type for products. `along_last`: k is the last axis; 8-bit operands
/// are contiguous along k.
Operand operand(VariantBuild& call, const std::string& name, const Shape& shape, bool along_last) {
  constexpr double factor = 16.0;
  const std::string label = call.label + "." + name;
  if (!call.r.quantizes()) return {call.in(name, shape), {}, {}};
  if (call.r.block == 0) {
    TensorSpec spec = tensor(call.p.unique_name(label), call.r.operand, shape, Role::input, Fill::normal(factor));
    std::vector<int> order(static_cast<std::size_t>(shape.rank()));
    std::iota(order.begin(), order.end(), 0);
    if (!along_last) std::swap(order[order.size() - 1], order[order.size() - 2]);
    spec.layout = Layout::ordered(shape, order);
    return {call.p.add(std::move(spec)), call.wide(name + ".inverse", {1}, Fill::constant(1.0 / factor)), {}};
  }
  const bool mx = call.r.operand == DType::f8_e4m3;
  std::optional<ValueId> scale, inverse;
  if (!mx) scale = call.wide(name + ".scale", {1}, Fill::constant(factor));
  if (!mx) inverse = call.wide(name + ".inverse", {1}, Fill::constant(1.0 / factor));
  const BlockFormat format = mx ? BlockFormat::mxfp8_e4m3 : BlockFormat::nvfp4;
  const QuantizedBlocks made = quantize_blocks(call.p, {format}, call.r.math, label, call.in(name, shape), scale);
  return {made.values, inverse, made.scales};
}

/// a [m, k] and b [k, n], each transposed where its attribute is set.
std::pair<Operand, Operand> factors_of(VariantBuild& call, const Gemm& g, std::int64_t batch = 0) {
  const auto made = [&](const char* name, bool transposed, bool along_last, std::int64_t rows, std::int64_t columns) {
    if (transposed) std::swap(rows, columns);
    return operand(call, name, batch == 0 ? Shape{rows, columns} : Shape{batch, rows, columns}, along_last);
  };
  const Extents e = extents_of(call);
  const Operand a = made("a", g.transpose_a, !g.transpose_a, e.m, e.k);
  return {a, made("b", g.transpose_b, g.transpose_b, e.k, e.n)};
}

void build_gemm(VariantBuild& call) {
  Gemm g = call.attributes<Gemm>();
  const std::int64_t batch = call.other("batch");
  const auto [m, n, k] = extents_of(call);
  const auto [a, b] = factors_of(call, g, batch);
  const Shape c = batch == 0 ? Shape{m, n} : Shape{batch, m, n};
  GemmOperands operands{.scale_a = a.inverse, .scale_b = b.inverse, .blocks_a = a.blocks, .blocks_b = b.blocks};
  g.scaled = a.inverse.has_value();
  g.blocks = a.blocks.has_value();
  if (g.beta != 0.0) operands.c_in = call.in("c_in", c);
  if (g.bias) operands.bias = call.in("bias", {n});
  if (g.epilogue == Gemm::Epilogue::gelu_gradient) operands.pre = call.in("pre", c, Fill::pointwise());
  const ValueId y = gemm(call.p, g, call.r.math, call.label, a.values, b.values, operands).c;
  if (operands.c_in || operands.pre || call.r.quantizes()) return;  // no derivative
  call.y = {y};
  call.wanted = {a.values, b.values};
  if (operands.bias) call.wanted.push_back(*operands.bias);
}

void build_gelu_bias_gradient(VariantBuild& call) {
  const auto& g = call.attributes<Gemm>();
  const auto [a, b] = factors_of(call, g);
  const ValueId pre = call.in("pre", {call.n - 2, call.n}, Fill::pointwise());
  (void)gemm_gelu_bias_gradient(call.p, g, call.r.math, call.label, a.values, b.values, pre);
}

void build_weight_bias_gradient(VariantBuild& call) {
  const auto& attributes = call.attributes<GemmWeightBiasGradient>();
  const auto [a, b] = factors_of(call, attributes.gemm);
  (void)gemm_weight_bias_gradient(call.p, attributes, call.r.math, call.label, a.values, b.values);
}

void build_column_sum(VariantBuild& call) {
  const std::int64_t sums = call.other("sums");
  const ValueId x = call.in("x", sums == 1 ? Shape{call.n + 2, call.n} : Shape{sums, 5, call.n});
  const Shape y = sums == 1 ? Shape{call.n} : Shape{sums, call.n};
  (void)column_sum(call.p, call.r.math, call.label, x,
                   call.p.reserve(tensor(call.label + ".y", call.r.wide, y, Role::gradient)));
}

}  // namespace

std::vector<Variants> matrix_variants() {
  return {
      {"gemm",
       gemm_kind,
       {{"transpose_a"},
        {"transpose_b"},
        {"alpha", {1.0, -0.75}},
        {"beta", {0.0, 1.0, -1.5}},
        {"bias"},
        {"epilogue"},
        {"gelu_form"},
        {"batch", {0, 3}}},
       build_gemm,
       {"f32", "tf32", "bf16", "f16", "f8_hybrid"}},
      {"gemm_blocks",
       gemm_kind,
       {{"transpose_b", {true}}, {"alpha", {1.0, -0.75}}, {"bias"}, {"batch", {0}}},
       build_gemm,
       {"mxfp8", "nvfp4"}},
      {"gemm_gelu_bias_gradient",
       gemm_gelu_bias_gradient_kind,
       {{"epilogue", {"gelu_gradient"}}, {"transpose_a"}, {"transpose_b"}, {"alpha", {1.0, 0.5}}, {"gelu_form"}},
       build_gelu_bias_gradient,
       suites::training_recipes()},
      {"gemm_weight_bias_gradient",
       gemm_weight_bias_gradient_kind,
       {{"transpose_a"}, {"transpose_b"}, {"alpha", {1.0, 2.5}}, {"bias_gradient"}},
       build_weight_bias_gradient,
       suites::training_recipes()},
      {"column_sum", column_sum_kind, {{"sums", {1, 3}}}, build_column_sum},
  };
}

}  // namespace gpubench::variants

// Products of matrices and what is fused into them.
#include <utility>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/gemm.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

/// a [n - 2, n + 2] and b [n + 2, n], each transposed where its attribute is set.
std::pair<ValueId, ValueId> factors_of(VariantBuild& call, const Gemm& g, std::int64_t batch = 0) {
  const auto operand = [&](const char* name, bool transposed, std::int64_t rows, std::int64_t columns) {
    if (transposed) std::swap(rows, columns);
    return call.in(name, batch == 0 ? Shape{rows, columns} : Shape{batch, rows, columns});
  };
  const std::int64_t m = call.n - 2, k = call.n + 2;
  const ValueId a = operand("a", g.transpose_a, m, k);
  return {a, operand("b", g.transpose_b, k, call.n)};
}

void build_gemm(VariantBuild& call) {
  const auto& g = call.attributes<Gemm>();
  const std::int64_t batch = call.other("batch"), m = call.n - 2;
  const auto [a, b] = factors_of(call, g, batch);
  const Shape c = batch == 0 ? Shape{m, call.n} : Shape{batch, m, call.n};
  GemmOperands operands;
  if (g.beta != 0.0) operands.c_in = call.in("c_in", c);
  if (g.bias) operands.bias = call.in("bias", {call.n});
  if (g.epilogue == Gemm::Epilogue::gelu_gradient) operands.pre = call.in("pre", c, Fill::pointwise());
  const ValueId y = gemm(call.p, g, call.r.math, call.label, a, b, operands).c;
  if (operands.c_in || operands.pre) return;  // products of a backward, which have none themselves
  call.y = {y};
  call.wanted = {a, b};
  if (operands.bias) call.wanted.push_back(*operands.bias);
}

void build_gelu_bias_gradient(VariantBuild& call) {
  const auto& g = call.attributes<Gemm>();
  const auto [a, b] = factors_of(call, g);
  const ValueId pre = call.in("pre", {call.n - 2, call.n}, Fill::pointwise());
  (void)gemm_gelu_bias_gradient(call.p, g, call.r.math, call.label, a, b, pre);
}

void build_weight_bias_gradient(VariantBuild& call) {
  const auto& attributes = call.attributes<GemmWeightBiasGradient>();
  const auto [a, b] = factors_of(call, attributes.gemm);
  (void)gemm_weight_bias_gradient(call.p, attributes, call.r.math, call.label, a, b);
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
       suites::training_recipes()},
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

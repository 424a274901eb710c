// The gradient of a bias, a sum over all rows: alone (column_sum), or fused with the adjacent product of a linear
// layer's backward, so that summands are read only once. The fused ops have no derivative.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"
#include "reference/ops/gemm.h"

namespace gpubench {

inline constexpr OpKind gemm_gelu_bias_gradient_kind{"gemm_gelu_bias_gradient", "a b pre", "dz db", defaults_of<Gemm>,
                                                     R"(
The first half of the backward of a GELU and its linear layer: the gradient before the GELU, and of its bias.
a: [m, k], or [k, m] when transpose_a: the gradient that flows into the next layer
b: [k, n], or [n, k] when transpose_b: that layer's weight
pre: [m, n]
dz: [m, n]
db: [n]

dz = (alpha op(a) op(b)) gelu'(pre), the product unrounded, dz rounded once to its type
db[j] = sum over i of dz[i, j], each before or after rounding to dz's type
The attributes are gemm's, with epilogue gelu_gradient and its gelu_form; beta, bias, scaled and blocks have their
defaults.)"};

struct GemmWeightBiasGradient {
  enum class Operand { a, b };
  Gemm gemm;                      ///< transposes and alpha; all else default
  Operand gradient = Operand::a;  ///< which factor is the gradient of the layer's output
  static void visit(auto&& attribute) {
    attribute.part(&GemmWeightBiasGradient::gemm);
    attribute.always("bias_gradient", &GemmWeightBiasGradient::gradient, AsValue{"a", "b"});
  }
};

inline constexpr OpKind gemm_weight_bias_gradient_kind{"gemm_weight_bias_gradient", "a b", "dw db",
                                                       defaults_of<GemmWeightBiasGradient>, R"(
The gradients of a linear layer's weight and bias, so that the incoming gradient is read once.
a: [m, k], or [k, m] when transpose_a
b: [k, n], or [n, k] when transpose_b
dw: [m, n]
db: [m] or [n]

dw = alpha op(a) op(b); db = the sum of factor bias_gradient over the rows of its tensor
  bias_gradient=a: a [k, m], transposed, db [m] (dw as [out, in])
  bias_gradient=b: b [k, n], not transposed, db [n] (dw as [in, out])
gemm's other attributes (beta, bias, scaled, blocks, epilogue, gelu_form) have their defaults.)"};

/// Whether a gemm has no attributes but transposes, alpha and `epilogue`.
[[nodiscard]] bool is_plain(const Gemm& attributes, Gemm::Epilogue epilogue);

[[nodiscard]] bool sums_along_k(const GemmWeightBiasGradient& attributes);

struct GemmBiasGradientResult {
  ValueId c;  ///< dz or dw
  ValueId db;
};
/// `db`: a reserved value, possibly of another type; default: dz's type.
/// Throws ProgramError for other attributes, and naming the tensor whose shape or type does not fit.
GemmBiasGradientResult gemm_gelu_bias_gradient(Program& program, const Gemm& attributes, const Math& math,
                                               std::string label, ValueId a, ValueId b, ValueId pre,
                                               std::optional<ValueId> db = {});
/// `dw`, `db`: reserved values, possibly of other types; default: the factors' type.
GemmBiasGradientResult gemm_weight_bias_gradient(Program& program, const GemmWeightBiasGradient& attributes,
                                                 const Math& math, std::string label, ValueId a, ValueId b,
                                                 std::optional<ValueId> dw = {}, std::optional<ValueId> db = {});

inline constexpr OpKind column_sum_kind{"column_sum", "x", "y", {}, R"(
The gradient of what is repeated over rows: a bias, the scale and shift of adaptive layer norm.
x: [..., n]
y: [n], or [..., n] of g rows

y[j] = sum over all leading indices of x[..., j]; with g rows, each sums equally many consecutive rows of x.)"};

/// `into`: a reserved value, of another type than x (f32 bias gradients of bf16 activations) or of several rows.
ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into = {});

}  // namespace gpubench

// The gradient of a bias: a sum over all rows. Alone (column_sum), or with the adjacent product in the backward of a
// linear layer, so that the summands are read only once. The fused ops need no derivative.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"
#include "reference/ops/gemm.h"

namespace gpubench {

inline constexpr OpKind gemm_gelu_bias_gradient_kind{"gemm_gelu_bias_gradient", "a b pre", "dz db"};
inline constexpr OpKind gemm_weight_bias_gradient_kind{"gemm_weight_bias_gradient", "a b", "dw db"};

/// gemm_gelu_bias_gradient, with the attributes of a gemm whose epilogue is gelu_gradient:
///   a [m, k], b [k, n] (either transposed), pre [m, n] -> dz [m, n], db [n]
///   dz = (alpha op(a) op(b)) gelu'(pre), the product unrounded, dz rounded once to its type
///   db[j] = sum over i of dz[i, j], each before or after it is rounded to dz's type
/// The first half of a GELU's and its linear layer's backward: a is the gradient flowing into the next layer, b its
/// weight.
///
/// gemm_weight_bias_gradient:
///   a, b -> dw = alpha op(a) op(b) [m, n], db: the sum of `gradient` over the rows of that tensor
///   gradient a: a [k, m], transposed, db [m] (dw as [out, in]); b: b [k, n], not transposed, db [n] (dw as [in, out]).
struct GemmWeightBiasGradient {
  enum class Operand { a, b };
  Gemm gemm;                      ///< transposes and alpha; everything else at its default
  Operand gradient = Operand::a;  ///< the factor that is the gradient of the layer's output
  static void visit(auto&& attribute) {
    attribute.part(&GemmWeightBiasGradient::gemm);
    attribute.always("bias_gradient", &GemmWeightBiasGradient::gradient, AsValue{"a", "b"});
  }
};

/// Whether a gemm's attributes ask for nothing but transposes, alpha and `epilogue`.
[[nodiscard]] bool is_plain(const Gemm& attributes, Gemm::Epilogue epilogue);

/// Whether summing `gradient` over the rows of its tensor is summing it along k.
[[nodiscard]] bool sums_along_k(const GemmWeightBiasGradient& attributes);

struct GemmBiasGradientResult {
  ValueId c;   ///< dz or dw
  ValueId db;  ///< the bias gradient
};
/// `db`: a reserved value for the bias gradient (one of another type); otherwise it has the type of dz.
/// Throws ProgramError for attributes that the op does not have, and naming the tensor whose shape or type does not
/// fit.
GemmBiasGradientResult gemm_gelu_bias_gradient(Program& program, const Gemm& attributes, const Math& math,
                                               std::string label, ValueId a, ValueId b, ValueId pre,
                                               std::optional<ValueId> db = {});
/// `dw`, `db`: reserved values of other types; otherwise both have that of the factors.
GemmBiasGradientResult gemm_weight_bias_gradient(Program& program, const GemmWeightBiasGradient& attributes,
                                                 const Math& math, std::string label, ValueId a, ValueId b,
                                                 std::optional<ValueId> dw = {}, std::optional<ValueId> db = {});

/// x: [..., n] -> y: [n], y[j] = sum over all leading indices of x[..., j]; or [..., n] of g rows, each the sum of as
/// many consecutive rows of x: the gradient of what repeats rows (repeat_rows, multiply, modulate_forward).
inline constexpr OpKind column_sum_kind{"column_sum", "x", "y"};

/// `into`: a reserved value of another type than x (f32 bias gradients of bf16 activations), or of several rows.
ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into = {});

}  // namespace gpubench

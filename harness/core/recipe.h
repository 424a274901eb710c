// A recipe is a case's precision: the storage type of each kind of tensor and the arithmetic of each op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/dtype.h"

namespace gpubench {

/// The declared arithmetic of an op. Bounds follow from this and the types of the op's tensors, never from a backend.
struct Math {
  enum class Inputs {
    exact,
    tf32,
    emulated,
    bf16,     ///< not in recipes: --arithmetic may accept bf16 and two_bf16
    two_bf16  ///< f32 numbers as a sum of two bf16
  };
  DType accumulate = DType::f32;
  Inputs inputs = Inputs::exact;
  bool fast_accumulation = false;  ///< sums of 8-bit products in fewer than 24 bits
  bool split_k_in_output = false;  ///< partial sums rounded to the output type
  bool approximate_tanh = false;   ///< GELU with a tanh within 2^-11 relative error, as a GPU's instruction
  friend bool operator==(const Math&, const Math&) = default;
};

/// Float recipes with `tensor` narrower than `wide` are mixed-precision: weights in use are copies of f32 masters.
/// 8-bit recipes keep tensors in bf16 between ops and quantize operands of matrix products (hybrid: e4m3 forward, e5m2
/// for gradients, which need its range; Micikevicius et al., "FP8 formats for deep learning", arXiv 2209.05433). Block
/// recipes have a scale for each block of neighbours along the summed axis: E8M0 for 32 (mxfp8; OCP Microscaling
/// Formats 1.0), or e4m3 for 16 and a factor for the tensor (nvfp4).
struct Recipe {
  std::string_view name;       ///< "f32", "bf16"
  DType tensor = DType::f32;   ///< activations, weights in use, and their gradients
  DType wide = DType::f32;     ///< norm parameters, statistics, log-sum-exp, loss, master weights, optimizer state
  DType operand = DType::f32;  ///< activations and weights as read by matrix products
  DType gradient_operand = DType::f32;  ///< gradients as read by matrix products
  Math math;
  int block = 0;  ///< neighbours that share a scale; 0: a whole tensor

  /// Whether operands of matrix products are scaled copies of tensors in 8 or 4 bits.
  [[nodiscard]] bool quantizes() const { return operand != tensor; }
};

/// All recipes, in order of falling precision: f64; f32 (all products and sums in f32: "pedantic"); tf32 (f32 tensors,
/// product inputs cut to 11 significant bits); bf16, f16 (f32 sums and masters); bf16_approx_tanh (bf16 with
/// Math::approximate_tanh); f8_hybrid; f8_hybrid_fast (with Math::fast_accumulation); mxfp8 (e4m3) and nvfp4 (e2m1).
[[nodiscard]] std::span<const Recipe> recipes();

/// Throws UsageError that names the known recipes.
[[nodiscard]] const Recipe& recipe(std::string_view name);

}  // namespace gpubench

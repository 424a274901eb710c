// A recipe is what a case's precision names: the storage type of each kind of tensor and the arithmetic of each op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/dtype.h"

namespace gpubench {

/// The arithmetic an op promises. A bound is derived from this and the types of the op's tensors, never from what a
/// backend happens to do.
struct Math {
  enum class Inputs {
    exact,
    tf32,
    emulated,
    bf16,     ///< no recipe has these two: a user may accept them (--arithmetic)
    two_bf16  ///< f32 numbers as a sum of two in bf16
  };
  DType accumulate = DType::f32;
  Inputs inputs = Inputs::exact;
  bool fast_accumulation = false;  ///< sums of 8-bit products kept in fewer than 24 bits from end to end
  bool split_k_in_output = false;  ///< partial sums rounded to the output type
  bool approximate_tanh = false;   ///< GELU with a tanh that is off by up to 2^-11 of itself, as a GPU's instruction is
  friend bool operator==(const Math&, const Math&) = default;
};

/// Every float recipe whose `tensor` is narrower than its `wide` is a mixed-precision one: weights in use are copies of
/// f32 masters. The 8-bit ones keep tensors in bf16 between ops, and quantize what matrix products read (hybrid:
/// Micikevicius et al., "FP8 formats for deep learning", arXiv 2209.05433: e4m3 forward, e5m2 for gradients, which need
/// its range). Those with blocks have a scale for each block of neighbours along what a product sums over: E8M0 of 32
/// (mxfp8; OCP Microscaling Formats 1.0), or e4m3 of 16 and a factor for the tensor (nvfp4).
struct Recipe {
  std::string_view name;       ///< "f32", "bf16"
  DType tensor = DType::f32;   ///< activations, weights in use, and their gradients
  DType wide = DType::f32;     ///< norm parameters, statistics, log-sum-exp, loss, master weights, optimizer state
  DType operand = DType::f32;  ///< activations and weights as matrix products read them
  DType gradient_operand = DType::f32;  ///< gradients as matrix products read them
  Math math;
  int block = 0;  ///< neighbours that share a scale; 0: a whole tensor

  /// Whether operands of matrix products are scaled copies of tensors in 8 or 4 bits.
  [[nodiscard]] bool quantizes() const { return operand != tensor; }
};

/// Every recipe that the suites may name, in order of falling precision:
///   f64; f32 (every product and sum in f32: "pedantic"); tf32 (f32 tensors, products of inputs cut to 11 significant
///   bits); bf16, f16 (f32 sums and masters); bf16_approx_tanh (bf16 with Math::approximate_tanh); f8_hybrid;
///   f8_hybrid_fast (the same with Math::fast_accumulation); mxfp8 (e4m3) and nvfp4 (e2m1).
[[nodiscard]] std::span<const Recipe> recipes();

/// Throws UsageError naming the known ones.
[[nodiscard]] const Recipe& recipe(std::string_view name);

}  // namespace gpubench

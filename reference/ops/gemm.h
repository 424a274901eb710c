// General matrix multiply, batched or not, with the epilogues that training fuses into it.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"
#include "reference/ops/pointwise.h"

namespace gpubench {

struct Gemm {
  enum class Epilogue { none, gelu, gelu_gradient };
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1.0;
  double beta = 0.0;
  bool bias = false;
  Epilogue epilogue = Epilogue::none;
  GeluForm gelu_form = GeluForm::tanh;
  bool scaled = false;  ///< a and b are 8-bit (with blocks, also f4), with a factor each
  bool blocks = false;  ///< with a scale per block along k
  static void visit(auto&& attribute) {
    attribute("transpose_a", &Gemm::transpose_a);
    attribute("transpose_b", &Gemm::transpose_b);
    attribute("alpha", &Gemm::alpha);
    attribute("beta", &Gemm::beta);
    attribute("bias", &Gemm::bias);
    attribute("scaled", &Gemm::scaled);
    attribute("blocks", &Gemm::blocks);
    attribute("epilogue", &Gemm::epilogue, AsValue{"none", "gelu", "gelu_gradient"});
    attribute.when([](const Gemm& g) { return g.epilogue != Epilogue::none && g.gelu_form == GeluForm::erf; },
                   "gelu_form", &Gemm::gelu_form, AsWord{"tanh", "erf"});
  }
  [[nodiscard]] bool has(std::string_view operand) const;
};

inline constexpr OpKind gemm_kind{"gemm", "a b c_in? bias? pre? scale_a? scale_b? blocks_a? blocks_b?", "c z?",
                                  defaults_of<Gemm>, R"(
A matrix product, batched or not, with the epilogues that training fuses into it.
a: [m, k]; [k, m] when transpose_a; [batch, ...] when batched, as b and c
b: [k, n]; [n, k] when transpose_b
c_in: as c, when beta is not 0
bias: [n]
pre: as c, when epilogue is gelu_gradient
scale_a, scale_b: f32 [1], when scaled: the factors that undo the scales of 8-bit a and b (quantize's inverse)
blocks_a: [m, k / block], when blocks: a scale per block along k (quantize_blocks' scales)
blocks_b: [n, k / block]
c: [m, n]; an update of c_in when beta is not 0
z: as c, the pre-activation, when epilogue is gelu

c = epilogue(alpha scale_a scale_b op(a) op(b) + beta c_in + bias)
  gelu: c = gelu(z), z = alpha a b + beta c_in + bias
  gelu_gradient: c = (alpha a b) gelu'(pre)
gelu_form is gelu_forward's form.

With blocks, a [m, k] and b [n, k] (transposed) are first multiplied by the scales of their blocks along k:
  mxfp8, mxfp4  blocks of 32 in f8 or f4; scales are u8 in E8M0: 2^(stored - 127), 255 is NaN
  nvfp4         blocks of 16 in f4; scales are magnitudes in f8_e4m3; scale_a and scale_b undo the tensors' scales
There is no derivative: gradients sum over the other axes, along which training quantizes the tensors separately.)"};

/// Positions of a gemm's tensors among its inputs, then outputs; -1: absent.
struct GemmRoles {
  int a = 0, b = 1, c_in = -1, bias = -1, pre = -1, scale_a = -1, scale_b = -1, blocks_a = -1, blocks_b = -1, c = -1;
};
[[nodiscard]] GemmRoles roles_of(const Gemm& attributes);

/// Neighbours that share a scale of this type: 32 for u8, 16 for f8_e4m3, 0 for types that are not scales.
[[nodiscard]] std::int64_t block_of_scale(DType type);

struct GemmExtents {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};
/// Throws ProgramError naming the tensor, its shape and the expected one.
[[nodiscard]] GemmExtents extents_of(const Gemm& attributes, const Shape& a, const Shape& b);

/// The attributes determine which of them must be given.
struct GemmOperands {
  std::optional<ValueId> c_in = {};
  std::optional<ValueId> bias = {};
  std::optional<ValueId> pre = {};
  std::optional<ValueId> scale_a = {};
  std::optional<ValueId> scale_b = {};
  std::optional<ValueId> blocks_a = {};
  std::optional<ValueId> blocks_b = {};
};
struct GemmResult {
  ValueId c;
  std::optional<ValueId> pre;  ///< with Epilogue::gelu
};
/// `into`: reserved for c, a part of a packed gradient or of another type (f32 weight gradients). Default: named
/// `label`, with a's type (bf16 if a is 8-bit).
GemmResult gemm(Program& program, const Gemm& attributes, const Math& math, std::string label, ValueId a, ValueId b,
                const GemmOperands& operands = {}, std::optional<ValueId> into = {});

}  // namespace gpubench

// Scaled 8- and 4-bit copies of a tensor for narrow matrix products, with one scale per tensor or per block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind amax_kind{"amax", "x", "amax", {}, R"(
The largest magnitude of a tensor.
x: any shape and floating-point type
amax: f32 [1]

amax = max |x|; NaN if any element is)"};

struct Quantize {
  DType to = DType::f8_e4m3;  ///< f8_e4m3 (largest 448) or f8_e5m2 (57344)
  bool saturate = true;
  static void visit(auto&& attribute) {
    attribute.always("to", &Quantize::to);
    attribute("saturate", &Quantize::saturate, AsWord{"unsaturated", "saturated"});
  }
};

inline constexpr OpKind quantize_kind{"quantize", "x scale", "values inverse amax", defaults_of<Quantize>, R"(
An 8-bit copy of a tensor, with one scale for all of it.
x: any shape and floating-point type
scale: f32 [1], in practice a power of two
values: as x, of the 8-bit type `to`, row-major or in the requested layout
inverse: f32 [1], 1 / scale: gemm's scale_a or scale_b
amax: f32 [1], max |x|, for the next scale

values = scale x, rounded to nearest, ties to even. With `saturate`, larger numbers and infinities become the largest
finite number (448 in f8_e4m3, 57344 in f8_e5m2); without, infinity in e5m2, and NaN in e4m3, which has no infinity.
The scale is made of earlier amax ("delayed scaling", one pass over x) or of x's own ("current scaling", which takes
a pass for amax first).

Source: OCP 8-bit Floating Point Specification 1.0; Micikevicius et al., arXiv 2209.05433)"};

struct Quantized {
  ValueId values, inverse, amax;
};
/// `layout`: of the values; matrix units that read only along the contracted axis need transposed copies.
/// Throws ProgramError for a type that is not 8-bit, an integer x, or a scale that is not f32 [1].
Quantized quantize(Program& program, const Quantize& attributes, const Math& math, std::string label, ValueId x,
                   ValueId scale, std::optional<Layout> layout = {});

/// The largest magnitude of x (floating point, any shape): f32 [1]; NaN if any element is.
ValueId amax(Program& program, const Math& math, std::string label, ValueId x);

struct ScaleFromAmax {
  DType to = DType::f8_e4m3;
  int margin = 0;
  static void visit(auto&& attribute) {
    attribute.always("to", &ScaleFromAmax::to);
    attribute("margin", &ScaleFromAmax::margin);
  }
};

inline constexpr OpKind scale_from_amax_kind{"scale_from_amax", "history", "scale", defaults_of<ScaleFromAmax>, R"(
The scale that quantize takes, from the largest magnitudes of the last steps, or the tensor's own.
history: f32 [n]
scale: f32 [1]

scale = the largest power of two such that scale max(history) <= 2^-margin times the largest number of the 8-bit type
`to`; limited to 2^-126 ... 2^127, and 1 if that maximum is 0, infinite or NaN)"};

/// Throws ProgramError for another type, a history that is not f32 [n], or a margin outside 0 to 100.
ValueId scale_from_amax(Program& program, const ScaleFromAmax& attributes, const Math& math, std::string label,
                        ValueId history);

/// Quantizes by x's own largest magnitude ("current scaling"): amax() as op "<label>.largest", scale_from_amax()
/// without margin as "<label>.scale", and quantize(), saturating, as `label`.
Quantized quantize_by_amax(Program& program, DType to, const Math& math, const std::string& label, ValueId x);

/// Block formats along the last axis: OCP Microscaling Formats 1.0 with E8M0 scales; NVIDIA's NVFP4 with e4m3 scales
/// and a second scale per tensor.
enum class BlockFormat : std::uint8_t { mxfp8_e4m3, mxfp8_e5m2, mxfp4, nvfp4 };
template <>
inline constexpr auto enum_names<BlockFormat> = std::to_array<std::string_view>({"mxfp8_e4m3", "mxfp8_e5m2", "mxfp4",
                                                                                 "nvfp4"});
/// 16 for nvfp4, else 32.
[[nodiscard]] std::int64_t block_of(BlockFormat format);
[[nodiscard]] DType element_of(BlockFormat format);

struct QuantizeBlocks {
  BlockFormat format = BlockFormat::mxfp8_e4m3;
  bool covers = false;  ///< mx: no element saturates
  static void visit(auto&& attribute) {
    attribute.always("format", &QuantizeBlocks::format);
    attribute("covers", &QuantizeBlocks::covers);
  }
  [[nodiscard]] bool has(std::string_view /*scale*/) const { return format == BlockFormat::nvfp4; }
};

inline constexpr OpKind quantize_blocks_kind{"quantize_blocks", "x scale?", "values scales",
                                             defaults_of<QuantizeBlocks>, R"(
A copy of a tensor in 8 or 4 bits, with a scale for each block of neighbours along the last axis.
x: f32, f16 or bf16 [..., n]
scale: f32 [1], for nvfp4 only
values: as x, of the format's type
scales: [..., n / block]: u8, blocks of 32; for nvfp4 f8_e4m3, blocks of 16

value * scale approximates the element (nvfp4: the element times the tensor's scale). All outputs are bitwise exact.

  format mx*    with a the block's largest magnitude, and elements up to L = 1.75 * 2^8 (e4m3), 1.75 * 2^15 (e5m2) or
                1.5 * 2^2 (e2m1), scale = 2^e with e = floor(log2 a) - {8, 15, 2} (OCP; elements beyond 2^e L
                saturate), or with `covers`, the smallest e with a <= 2^e L (cuBLAS, Transformer Engine). e is at
                least -127, also for a = 0. values = x / 2^e, rounded once, saturated. scales hold e + 127 (E8M0).
  format nvfp4  t = x * scale rounded to f32; scales = max |t| / 6, rounded to f32 and that to e4m3, saturated;
                values = t / scales, rounded to f32 and that to e2m1, saturated; zeros of x's sign where the block's
                scale is 0.

A block with a NaN or an infinity has scale NaN (E8M0: 255) and values NaN (e2m1, which has no NaN: 6).

Where the formats allow several results, each is accepted:
  mx*    with an infinity and no NaN, e = 127 as well (E8M0: 254), with a saturated infinity
  nvfp4  the f32 operations in another order: a / 6 * scale, a * (scale / 6); x * (scale / scales), t * (1 / scales);
         scales below 2^-6 as 2^-6

Source: OCP Microscaling Formats 1.0; NVIDIA's NVFP4)"};

struct QuantizedBlocks {
  ValueId values;  ///< x's shape
  ValueId scales;  ///< x's shape with the last axis divided by block_of(): u8, or f8_e4m3
};
/// x: f32, f16 or bf16 [..., n]. `scale`: f32 [1], for nvfp4 only. Throws ProgramError for another type, an n that is
/// not a multiple of the block, or a scale that is missing, not f32 [1], or unexpected.
QuantizedBlocks quantize_blocks(Program& program, const QuantizeBlocks& attributes, const Math& math, std::string label,
                                ValueId x, std::optional<ValueId> scale = {});

}  // namespace gpubench

// The scaled 8-bit copy of a tensor, which matrix products of the 8-bit recipes read.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind quantize_kind{"quantize", "x scale", "values inverse amax"};

/// values = scale x, clamped to the largest finite number of the 8-bit type and rounded to it, to nearest, ties to
/// even.
///
/// Inputs, in order: x: a floating-point type, any shape; scale: f32 [1], in practice a power of two chosen from
/// earlier amax ("delayed scaling": one pass over x; Micikevicius et al., arXiv 2209.05433). Outputs, in order: values:
/// as x, of type `to`, row-major or in the layout asked for; inverse: f32 [1], 1 / scale, what gemm multiplies with
/// (scale_a, scale_b) to undo the scaling; amax: f32 [1], max |x|, from which the next scale is chosen.
struct Quantize {
  DType to = DType::f8_e4m3;  ///< f8_e4m3 (largest 448) or f8_e5m2 (57344)
  static void visit(auto&& attribute) { attribute.always("to", &Quantize::to); }
};

struct Quantized {
  ValueId values, inverse, amax;
};
/// `layout`: of the values; matrix units that read along the contracted axis only need transposed copies.
/// Throws ProgramError for a type that has no 8 bits, an integer x, or a scale that is not f32 [1].
Quantized quantize(Program& program, const Quantize& attributes, const Math& math, std::string label, ValueId x,
                   ValueId scale, std::optional<Layout> layout = {});

}  // namespace gpubench

// Ops that move elements and compute nothing.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// y = x, bit for bit; same type and shape. Either may be in a memory other than the device's own.
inline constexpr OpKind copy_kind{"copy", "x", "y"};
/// Axis `a` of y is axis permutation[a] of x; y is written out row-major.
inline constexpr OpKind transpose_kind{"transpose", "x", "y"};
/// Same logical tensor, another layout (NCHW to NHWC, plain to blocked).
inline constexpr OpKind reorder_kind{"reorder", "x", "y"};
/// Every row several times, one behind the other: x [..., n] of g rows -> y [..., n] of a multiple of g rows.
inline constexpr OpKind repeat_rows_kind{"repeat_rows", "x", "y"};

struct Transpose {
  std::vector<int> permutation;
  static void visit(auto&& attribute) { attribute("permutation", &Transpose::permutation); }
};

ValueId copy(Program& program, std::string label, ValueId x, Memory to = Memory::device);
ValueId transpose(Program& program, std::vector<int> permutation, std::string label, ValueId x);
ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase = Phase::timed);
/// x to a reserved value of its shape and type: a part of a larger one, to join tensors along an axis.
void reorder_into(Program& program, std::string label, ValueId x, ValueId y);
/// `y`: reserved, its shape says how many rows there are of each. `math`: of the gradient. Throws ProgramError naming
/// the tensor whose shape or type does not fit.
void repeat_rows_into(Program& program, const Math& math, std::string label, ValueId x, ValueId y);

}  // namespace gpubench

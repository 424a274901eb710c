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

struct Transpose {
  std::vector<int> permutation;
  static void visit(auto&& attribute) { attribute("permutation", &Transpose::permutation); }
};

ValueId copy(Program& program, std::string label, ValueId x, Memory to = Memory::device);
ValueId transpose(Program& program, std::vector<int> permutation, std::string label, ValueId x);
ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase = Phase::timed);

}  // namespace gpubench

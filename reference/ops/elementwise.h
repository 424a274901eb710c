// Ops that map or move elements: copy, triad, scale, add, cast, transpose, reorder.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// y = x, bit for bit; same type and shape. Either may lie in another memory than the device's own.
inline constexpr OpKind copy_kind{"copy", "x", "y"};
/// y = b + factor c (STREAM: McCalpin 1995).
inline constexpr OpKind triad_kind{"triad", "b c", "y"};
/// y = factor x.
inline constexpr OpKind scale_kind{"scale", "x", "y"};
/// y = a + b.
inline constexpr OpKind add_kind{"add", "a b", "y"};
/// y = x rounded once to y's type.
inline constexpr OpKind cast_kind{"cast", "x", "y"};
/// Axis `a` of y is axis permutation[a] of x; y is written out row-major.
inline constexpr OpKind transpose_kind{"transpose", "x", "y"};
/// Same logical tensor, another layout (NCHW to NHWC, plain to blocked).
inline constexpr OpKind reorder_kind{"reorder", "x", "y"};

struct Triad {
  double factor = 3.0;
  static void visit(auto&& attribute) { attribute("factor", &Triad::factor); }
};
struct Scale {
  double factor = 1.0;
  static void visit(auto&& attribute) { attribute("factor", &Scale::factor); }
};
struct Transpose {
  std::vector<int> permutation;
  static void visit(auto&& attribute) { attribute("permutation", &Transpose::permutation); }
};

ValueId copy(Program& program, std::string label, ValueId x, Memory to = Memory::device);
ValueId triad(Program& program, double factor, const Math& math, std::string label, ValueId b, ValueId c);
ValueId scale(Program& program, double factor, const Math& math, std::string label, ValueId x);
ValueId add(Program& program, const Math& math, std::string label, ValueId a, ValueId b);
ValueId cast(Program& program, DType to, std::string label, ValueId x);
ValueId transpose(Program& program, std::vector<int> permutation, std::string label, ValueId x);
ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase = Phase::timed);

}  // namespace gpubench

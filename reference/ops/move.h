// Ops that move elements and compute nothing.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind copy_kind{"copy", "x", "y", {}, R"(
Copies a tensor, also between memories.
x, y: any type and shape, alike

y = x, bit for bit. Either may be in a memory other than the device's own.)"};

inline constexpr OpKind reorder_kind{"reorder", "x", "y", {}, R"(
The same logical tensor in another layout (NCHW to NHWC, plain to blocked).
x, y: any type and shape, alike; layouts differ

y = x, bit for bit)"};

inline constexpr OpKind repeat_rows_kind{"repeat_rows", "x", "y", {}, R"(
Every row several times, one behind the other.
x: [..., n] of g rows
y: [..., n] of a multiple of g rows

y[r] = x[r / (rows of y / g)])"};

struct Transpose {
  std::vector<int> permutation;
  static void visit(auto&& attribute) { attribute("permutation", &Transpose::permutation); }
};

inline constexpr OpKind transpose_kind{"transpose", "x", "y", defaults_of<Transpose>, R"(
Permutes the axes of a tensor.
x: any type and shape
y: x's type, row-major

Axis `a` of y is axis permutation[a] of x.)"};

ValueId copy(Program& program, std::string label, ValueId x, Memory to = Memory::device);
ValueId transpose(Program& program, const Transpose& attributes, std::string label, ValueId x);
ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase = Phase::timed);
/// Writes x to y, reserved with its shape and type: a part of a larger tensor, to join tensors along an axis.
void reorder_into(Program& program, std::string label, ValueId x, ValueId y);
/// `y`: reserved; its shape determines the repeats. `math`: of the gradient. Throws ProgramError naming the tensor
/// whose shape or type does not fit.
void repeat_rows_into(Program& program, const Math& math, std::string label, ValueId x, ValueId y);

}  // namespace gpubench

// Ops that map or move elements: copy, triad, scale, add, cast, transpose, reorder.
#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind copy_kind{"copy"};
inline constexpr OpKind triad_kind{"triad"};
inline constexpr OpKind scale_kind{"scale"};
inline constexpr OpKind add_kind{"add"};
inline constexpr OpKind cast_kind{"cast"};
inline constexpr OpKind transpose_kind{"transpose"};
inline constexpr OpKind reorder_kind{"reorder"};

/// y = x, bit for bit. x -> y, same type and shape; either may lie in another memory than the device's own.
struct Copy {
  friend bool operator==(const Copy&, const Copy&) = default;
};
/// y = b + factor c (STREAM: McCalpin 1995). Inputs b, c -> y.
struct Triad {
  double factor = 3.0;
  friend bool operator==(const Triad&, const Triad&) = default;
};
/// y = factor x.
struct Scale {
  double factor = 1.0;
  friend bool operator==(const Scale&, const Scale&) = default;
};
/// y = a + b.
struct Add {
  friend bool operator==(const Add&, const Add&) = default;
};
/// y = x rounded once to y's type.
struct Cast {
  friend bool operator==(const Cast&, const Cast&) = default;
};
/// y[i_perm...] : axis `a` of y is axis permutation[a] of x; y is written out row-major.
struct Transpose {
  std::vector<int> permutation;
  friend bool operator==(const Transpose&, const Transpose&) = default;
};
/// Same logical tensor, another layout (NCHW to NHWC, plain to blocked).
struct Reorder {
  friend bool operator==(const Reorder&, const Reorder&) = default;
};
[[nodiscard]] std::string describe(const Copy& attributes);
[[nodiscard]] std::string describe(const Triad& attributes);
[[nodiscard]] std::string describe(const Scale& attributes);
[[nodiscard]] std::string describe(const Add& attributes);
[[nodiscard]] std::string describe(const Cast& attributes);
[[nodiscard]] std::string describe(const Transpose& attributes);
[[nodiscard]] std::string describe(const Reorder& attributes);

ValueId copy(Program& program, std::string label, ValueId x, Memory to = Memory::device);
ValueId triad(Program& program, double factor, const Math& math, std::string label, ValueId b, ValueId c);
ValueId scale(Program& program, double factor, const Math& math, std::string label, ValueId x);
ValueId add(Program& program, const Math& math, std::string label, ValueId a, ValueId b);
ValueId cast(Program& program, DType to, std::string label, ValueId x);
ValueId transpose(Program& program, std::vector<int> permutation, std::string label, ValueId x);
ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase = Phase::timed);

}  // namespace gpubench

// Rotary position embedding (Su et al., arXiv 2104.09864): rotates pairs of a head's elements by angles that grow with
// the position.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

struct Rotary {
  /// Elements of pair i: half: i and i + d/2 (GPT-NeoX, Llama); interleaved: 2i and 2i + 1 (the paper, GPT-J).
  enum class Pairing { half, interleaved };
  Pairing pairing = Pairing::half;
  /// The transposed rotation, with -s for s: the gradient, and with tables of true angles the inverse.
  bool inverse = false;
  static void visit(auto&& attribute) {
    attribute("pairing", &Rotary::pairing, AsWord{"half", "interleaved"});
    attribute("inverse", &Rotary::inverse);
  }
};

inline constexpr OpKind rotary_kind{"rotary", "x cos sin", "y", defaults_of<Rotary>, R"(
Rotary position embedding: pairs of a head's elements are rotated by angles that grow with the position.
x, y: [b, s, h, d]; y may be an update of x
cos, sin: f32 [s, d/2] (f64 for f64)

With c and s the elements of the tables at the token's position in its sequence and pair i:
  y_first = x_first c - x_second s,  y_second = x_second c + x_first s
pairing half: i and i + d/2 (GPT-NeoX, Llama); interleaved: 2i and 2i + 1 (the paper, GPT-J).
inverse: the transposed rotation, with -s for s: the gradient, and with tables of true angles the inverse. Any tables
are accepted: c^2 + s^2 = 1 is not required. Angles are usually position * base^(-2i/d), base 10000. x and y may be
strided parts of packed storages; the last axis is contiguous. To rotate only the first elements of each head, pass
that part.

Source: Su et al., arXiv 2104.09864)"};

struct RotaryTables {
  ValueId cos, sin;
};

struct RotaryExtents {
  std::int64_t b = 0, s = 0, h = 0, d = 0;
};
/// Throws ProgramError naming the tensor, its shape and the expected one.
[[nodiscard]] RotaryExtents rotary_extents(const TensorSpec& x);

/// `into`: reserved for y, a part of a packed tensor or the next version of x; default: row-major.
ValueId rotary(Program& program, const Rotary& attributes, const Math& math, std::string label, ValueId x,
               const RotaryTables& tables, const std::optional<ValueId>& into = {});

}  // namespace gpubench

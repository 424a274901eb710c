// How two tensors that should be alike differ: how many elements, at which distances, in which lanes, in which bits. A
// stuck bit, a broken lane and a lost transfer leave different pictures, and what goes wrong unseen in a GPU is mostly
// several bits in elements a warp's width apart (arXiv 2605.04213).
#pragma once

#include <cstdint>
#include <string>

#include "harness/core/tensor.h"

namespace gpubench {

struct WrongBits {
  std::int64_t elements = 0;  ///< whose bits differ
  std::int64_t first = -1;    ///< logical linear index of the first of them
  /// What they have in common: ", every 32nd from there, all in lane 7 of 32, in bits 28-30 of each"; lanes are logical
  /// linear indices modulo 32, named only where chance would not put as many elements into as few. Empty where none
  /// differs.
  std::string words;
};

/// Compares every logical element bit for bit; both tensors have the same shape, type and layout.
[[nodiscard]] WrongBits wrong_bits(const TensorView& got, const TensorView& expected);

}  // namespace gpubench

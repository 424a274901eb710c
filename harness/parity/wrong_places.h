// Where in a tensor wrong elements are: what a wrong tile, head, channel or stride looks like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/tensor.h"

namespace gpubench {

/// The index along each axis of the element with this logical linear (row-major) index.
[[nodiscard]] std::vector<std::int64_t> multi_index(const Shape& shape, std::int64_t linear);

/// `wrong`: logical linear indices of judged elements outside their bound; at least one. The picture folds all axes but
/// the last into rows, and has at most 32 bands of them and of columns. The words give the least box that holds all, an
/// index or a range for each axis, with a step of more than 1 where all are a multiple of it apart:
/// "all 16 are in [0-15, 32-47]", "all 12 are in [3, 0-88 in steps of 8]", "1 at [4, 2]", "spread over all of it".
[[nodiscard]] WrongPlaces wrong_places(const TensorSpec& spec, std::span<const std::int64_t> wrong);

// How two tensors that should be alike differ: how many elements, at which distances, in which lanes, in which bits. A
// stuck bit, a broken lane and a lost transfer leave different pictures, and what goes wrong unseen in a GPU is mostly
// several bits in elements a warp's width apart (arXiv 2605.04213).

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

/// The elements in which two tensors differ: suspects, where their fingerprints do.
struct ElementDifferences {
  std::int64_t elements = 0;  ///< whose bits differ
  std::int64_t first = -1;    ///< logical linear index of the first of them
  std::vector<std::int64_t>
      largest;  ///< logical linear indices, by |got - expected| descending; NaN counts as infinity
};

/// Compares every logical element bit for bit; both tensors have the same shape, type and layout. Keeps at most `most`
/// indices.
[[nodiscard]] ElementDifferences difference(const TensorView& got, const TensorView& expected, std::int64_t most);

}  // namespace gpubench

// Comparing elements with the textbook, with the live mutations that prove the comparison could have failed; where
// wrong elements are, and where two tensors differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/dtype.h"
#include "harness/core/program.h"
#include "harness/core/record.h"
#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// One judged element, kept.
struct CheckedElement {
  std::int64_t linear = -1;  ///< logical linear index in its output
  Expected judged;
  double got = 0.0;
};

/// What comparing found; tallies of consecutive runs add up.
struct Tally {
  std::int64_t judged = 0;
  std::int64_t bad = 0;
  double error_over_bound = 0.0;  ///< the largest; infinity for NaN
  CheckedElement worst;           ///< the element that it belongs to
  CheckedElement most_sensitive;  ///< the finite reference that is largest in units of its bound
  double most_sensitive_ratio = -1.0;
  std::vector<Mismatch> wrong;  ///< elements outside their bound; of very many the first million

  void add(const Tally& later);
};

/// How much of its bound an element uses: the distance from the true value to the numbers that round to `got`, over the
/// bound (of exact ops: the error in units of half an ulp). 0 where rounding to the storage type explains everything,
/// at most 1 for accepted elements, above 1 for others, infinity where the classes (finite, infinite, NaN) differ.
[[nodiscard]] double error_over_bound(const Expected& judged, DType type, double got);

/// Elements [first, first + got.size()) of an output against their judged values.
void compare(std::int64_t first, std::span<const Expected> judged, DType type, std::span<const double> got,
             Tally& tally);

/// What became of the live mutations of one output.
struct MutationReport {
  int tried = 0;
  int rejected = 0;
  std::vector<const char*> accepted;  ///< "NaN", "zeros", "flipped signs", "a step beyond the bound", ...
};

/// Corrupts copies of the elements in `panel`, the most sensitive of which is its last, and compares again: NaN, zeros,
/// flipped signs, a step beyond the bound, three bits of every 32nd element. Each must be rejected. Zeros, signs and
/// bits are tried where some reference does not itself round to zero. Where a reference is NaN, a number is tried.
[[nodiscard]] MutationReport mutate(std::span<const CheckedElement> panel, DType type);

// Where in a tensor wrong elements are: what a wrong tile, head, channel or stride looks like.

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
  /// Logical linear indices, by |got - expected| descending; NaN counts as infinity.
  std::vector<std::int64_t> largest;
};

/// Compares every logical element bit for bit; both tensors have the same shape, type and layout. Keeps at most `most`
/// indices.
[[nodiscard]] ElementDifferences difference(const TensorView& got, const TensorView& expected, std::int64_t most);

}  // namespace gpubench

// Comparison of elements with the textbook, the live mutations that prove that it can fail, and patterns of wrong
// elements.
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

struct CheckedElement {
  std::int64_t linear = -1;  ///< logical linear index in its output
  Expected judged;
  double got = 0.0;
};

/// Results of comparisons; tallies of consecutive runs add up.
struct Tally {
  std::int64_t judged = 0;
  std::int64_t bad = 0;
  double error_over_bound = 0.0;  ///< the largest; infinity for NaN
  CheckedElement worst;           ///< where `error_over_bound` is reached
  CheckedElement most_sensitive;  ///< the finite reference that is largest in units of its bound
  double most_sensitive_ratio = -1.0;
  std::vector<Mismatch> wrong;  ///< elements outside their bound, at most a million

  void add(const Tally& later);
};

/// The part of its bound that an element uses: the distance from the true value to the numbers that round to `got`,
/// over the bound. For exact ops: the error in units of half an ulp. At most 1 for accepted elements, above 1 for
/// others, infinity where the classes (finite, infinite, NaN) differ.
[[nodiscard]] double error_over_bound(const Expected& judged, DType type, double got);

/// Compares elements [first, first + got.size()) of an output with their judged values.
void compare(std::int64_t first, std::span<const Expected> judged, DType type, std::span<const double> got,
             Tally& tally);

struct MutationReport {
  int tried = 0;
  int rejected = 0;
  std::vector<const char*> accepted;  ///< "NaN", "zeros", "flipped signs", "a step beyond the bound", ...
};

/// Corrupts copies of the elements in `panel`, whose last is the most sensitive, and compares again: NaN, zeros,
/// flipped signs, a step beyond the bound, three bits of every 32nd element. Each must be rejected. Zeros, signs and
/// bits need a reference that does not itself round to zero. A NaN reference is replaced by a number.
[[nodiscard]] MutationReport mutate(std::span<const CheckedElement> panel, DType type);

[[nodiscard]] std::vector<std::int64_t> multi_index(const Shape& shape, std::int64_t linear);

/// `wrong`: logical linear indices of judged elements outside their bound; at least one. The picture folds all axes but
/// the last into rows, in at most 32 x 32 bands. The words give the smallest box, with a step where all indices are a
/// multiple of it apart: "all 16 are in [0-15, 32-47]", "all 12 are in [3, 0-88 in steps of 8]", "1 at [4, 2]", "spread
/// over all of it".
[[nodiscard]] WrongPlaces wrong_places(const TensorSpec& spec, std::span<const std::int64_t> wrong);

// Corruption by GPU hardware mostly flips several bits in elements a warp's width apart (arXiv 2605.04213).

struct WrongBits {
  std::int64_t elements = 0;  ///< whose bits differ
  std::int64_t first = -1;    ///< logical linear index of the first difference
  /// The common pattern: ", every 32nd from there, all in lane 7 of 32, in bits 28-30 of each". Lanes are logical
  /// linear indices modulo 32, named only where chance is unlikely. Empty where no element differs.
  std::string words;
};

/// Compares every logical element bit for bit; both tensors have the same shape, type and layout.
[[nodiscard]] WrongBits wrong_bits(const TensorView& got, const TensorView& expected);

struct ElementDifferences {
  std::int64_t elements = 0;  ///< whose bits differ
  std::int64_t first = -1;    ///< logical linear index of the first difference
  /// Logical linear indices, by |got - expected| descending; NaN counts as infinity.
  std::vector<std::int64_t> largest;
};

/// As wrong_bits(); keeps at most `most` indices.
[[nodiscard]] ElementDifferences difference(const TensorView& got, const TensorView& expected, std::int64_t most);

}  // namespace gpubench

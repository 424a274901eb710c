// Comparing elements with the textbook, with the live mutations that prove the comparison could have failed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/dtype.h"
#include "harness/core/program.h"
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

}  // namespace gpubench

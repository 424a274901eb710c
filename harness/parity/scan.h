// The part of the check that sees every element: who is poisoned, who is not finite. Judging comes after (judge.h).
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/tensor.h"

namespace gpubench {

struct Scan {
  std::int64_t unwritten = 0;         ///< elements that hold the poison pattern
  std::int64_t first_unwritten = -1;  ///< logical linear index
  /// The first elements that must be judged: NaN, infinities, and (where a result may look like it) the poison pattern.
  std::vector<std::int64_t> suspects;
  /// Of floating types the finite elements with the eight largest magnitudes, then the four smallest: where a bit of an
  /// exponent, a factor or a forgotten term shows.
  std::vector<std::int64_t> extremes;
};

/// Whether a correct result may hold the same bits as the poison: integers, and types of one byte. There the pattern
/// alone proves nothing, and the element is judged like any other.
[[nodiscard]] bool poison_is_ambiguous(DType type);

/// Looks at every logical element, where it lies; of a tensor on a device only the few chunks that hold what is named
/// are read. Keeps at most `most_suspects`.
[[nodiscard]] Scan scan(const TensorView& output, std::int64_t most_suspects);

}  // namespace gpubench

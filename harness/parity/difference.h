// Which elements two tensors of one kind do not share, bit for bit: whom a fingerprint that differs makes suspect.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/tensor.h"

namespace gpubench {

struct Difference {
  std::int64_t elements = 0;  ///< whose bits differ
  std::int64_t first = -1;    ///< logical linear index of the first of them
  std::vector<std::int64_t>
      largest;  ///< logical linear indices, by |got - expected| descending; NaN counts as infinity
};

/// Compares every logical element; both have the same shape, type and layout. Keeps at most `most` indices.
[[nodiscard]] Difference difference(const TensorView& got, const TensorView& expected, std::int64_t most);

}  // namespace gpubench

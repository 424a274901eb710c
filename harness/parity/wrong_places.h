// Where in a tensor wrong elements are: what a wrong tile, head, channel or stride looks like.
#pragma once

#include <cstdint>
#include <span>
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

}  // namespace gpubench

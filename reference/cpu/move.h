// Moves the elements of a tensor between any two layouts, inner blocks included.
//
// In every layout, strided or blocked, an element's offset is a sum with one term per axis. So each axis gets a table
// of its terms on either side, and an element's two addresses are sums of table entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/core/shape.h"

namespace gpubench::cpu {

/// Offsets in bytes of each index of one axis, in the layout read and in the one written.
struct AxisOffsets {
  std::vector<std::int64_t> from, to;
};

class Move {
 public:
  /// Both layouts describe `shape`; elements have `element_bytes` (1, 2, 4 or 8) bytes.
  Move(const Shape& shape, const Layout& from, const Layout& to, std::size_t element_bytes);

  /// Padding of a blocked layout is written as zeros, as oneDNN wants it.
  void run(int threads, const std::byte* from, std::byte* to) const;

 private:
  void chunk(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const;

  std::vector<AxisOffsets> axes_;  // outermost first; the last two are walked in tiles
  std::int64_t outer_ = 1;         // product of all extents but the last two
  std::int64_t row_tiles_ = 1;
  std::size_t element_bytes_ = 1;
  std::size_t zeroed_bytes_ = 0;  // of the output, when it has padding
};

}  // namespace gpubench::cpu

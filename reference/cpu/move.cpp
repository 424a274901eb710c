#include "reference/cpu/move.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

// A tile of 32 by 32 elements touches at most 32 lines on either side: both stay in the first-level cache.
constexpr std::int64_t tile = 32;

// The terms of one axis: its offset with all other indices zero.
std::vector<std::int64_t> terms(const Layout& layout, int rank, int axis, std::int64_t extent,
                                std::size_t element_bytes) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(rank), 0);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) {
    index[static_cast<std::size_t>(axis)] = i;
    offsets[static_cast<std::size_t>(i)] = layout.offset(index) * static_cast<std::int64_t>(element_bytes);
  }
  return offsets;
}

// How far apart neighbours along an axis are: which axis to walk innermost.
std::int64_t step(const std::vector<std::int64_t>& offsets) {
  return offsets.size() < 2 ? std::numeric_limits<std::int64_t>::max() : offsets[1] - offsets[0];
}

template <class Element>
void move_tile(const AxisOffsets& rows, const AxisOffsets& columns, std::int64_t row, std::int64_t row_end,
               const std::byte* from, std::byte* to) {
  const auto column_count = static_cast<std::int64_t>(columns.to.size());
  for (std::int64_t column = 0; column < column_count; column += tile) {
    const std::int64_t column_end = std::min(column + tile, column_count);
    for (std::int64_t i = row; i < row_end; ++i) {
      const std::byte* from_row = from + rows.from[static_cast<std::size_t>(i)];
      std::byte* to_row = to + rows.to[static_cast<std::size_t>(i)];
      for (std::int64_t j = column; j < column_end; ++j) {
        std::memcpy(to_row + columns.to[static_cast<std::size_t>(j)],
                    from_row + columns.from[static_cast<std::size_t>(j)], sizeof(Element));
      }
    }
  }
}

}  // namespace

Move::Move(const Shape& shape, const Layout& from, const Layout& to, std::size_t element_bytes)
    : element_bytes_(element_bytes) {
  const int rank = shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    axes_.push_back(
        {terms(from, rank, axis, shape[axis], element_bytes), terms(to, rank, axis, shape[axis], element_bytes)});
  }
  while (axes_.size() < 2) axes_.push_back({{0}, {0}});
  // Innermost: the axis whose neighbours are written side by side; around it the one whose neighbours are read so. What
  // each line brings in is then used up within one tile.
  std::stable_sort(axes_.begin(), axes_.end(),
                   [](const AxisOffsets& a, const AxisOffsets& b) { return step(a.to) > step(b.to); });
  std::stable_sort(axes_.begin(), axes_.end() - 1,
                   [](const AxisOffsets& a, const AxisOffsets& b) { return step(a.from) > step(b.from); });
  for (std::size_t axis = 0; axis + 2 < axes_.size(); ++axis)
    outer_ *= static_cast<std::int64_t>(axes_[axis].to.size());
  row_tiles_ = (static_cast<std::int64_t>(axes_[axes_.size() - 2].to.size()) + tile - 1) / tile;
  const std::int64_t span = to.span_elements(shape);
  if (!to.blocks.empty() && span > shape.elements()) zeroed_bytes_ = static_cast<std::size_t>(span) * element_bytes;
}

void Move::run(int threads, const std::byte* from, std::byte* to) const {
  parallel_chunks(threads, static_cast<std::int64_t>(zeroed_bytes_), 1 << 16,
                  [to](std::int64_t begin, std::int64_t end) {
                    std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
                  });
  parallel_chunks(threads, outer_ * row_tiles_, 1,
                  [=, this](std::int64_t begin, std::int64_t end) { chunk(from, to, begin, end); });
}

void Move::chunk(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const {
  const AxisOffsets& rows = axes_[axes_.size() - 2];
  const AxisOffsets& columns = axes_.back();
  const auto row_count = static_cast<std::int64_t>(rows.to.size());
  for (std::int64_t block = begin; block < end; ++block) {
    const std::byte* from_block = from;
    std::byte* to_block = to;
    std::int64_t rest = block / row_tiles_;
    for (std::size_t axis = axes_.size() - 2; axis-- > 0;) {
      const auto extent = static_cast<std::int64_t>(axes_[axis].to.size());
      from_block += axes_[axis].from[static_cast<std::size_t>(rest % extent)];
      to_block += axes_[axis].to[static_cast<std::size_t>(rest % extent)];
      rest /= extent;
    }
    const std::int64_t row = block % row_tiles_ * tile;
    const std::int64_t row_end = std::min(row + tile, row_count);
    switch (element_bytes_) {
      case 1: move_tile<std::uint8_t>(rows, columns, row, row_end, from_block, to_block); break;
      case 2: move_tile<std::uint16_t>(rows, columns, row, row_end, from_block, to_block); break;
      case 4: move_tile<std::uint32_t>(rows, columns, row, row_end, from_block, to_block); break;
      default: move_tile<std::uint64_t>(rows, columns, row, row_end, from_block, to_block); break;
    }
  }
}

}  // namespace gpubench::cpu

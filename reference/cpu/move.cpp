// copy, repeat_rows, transpose and reorder.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/parallel.h"
#include "reference/ops/move.h"

namespace gpubench::cpu {
namespace {

// Moves elements between any two layouts, including blocked ones.
//
// In every layout an element's offset is a sum with one term per axis. Each axis gets tables of its terms; an address
// is a sum of table entries.

/// Byte offsets by index of an axis, in the input's and in the output's layout.
struct AxisOffsets {
  std::vector<std::int64_t> from, to;
};

// A tile of 32 x 32 elements touches at most 32 lines per side: both stay in the L1 cache.
constexpr std::int64_t tile = 32;

// Offsets along one axis, with all other indices 0.
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

// Distance of neighbours along an axis, for choosing the innermost axis.
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

class Move {
 public:
  /// Both layouts describe `shape`; elements have `element_bytes` (1, 2, 4 or 8) bytes.
  Move(const Shape& shape, const Layout& from, const Layout& to, std::size_t element_bytes)
      : element_bytes_(element_bytes) {
    const int rank = shape.rank();
    for (int axis = 0; axis < rank; ++axis) {
      axes_.push_back(
          {terms(from, rank, axis, shape[axis], element_bytes), terms(to, rank, axis, shape[axis], element_bytes)});
    }
    while (axes_.size() < 2) axes_.push_back({{0}, {0}});
    // Innermost: the axis that is contiguous in the output; around it the one contiguous in the input. A tile then uses
    // whole cache lines.
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

  /// Writes the padding of blocked layouts as zeros, as oneDNN requires.
  void run(int threads, const std::byte* from, std::byte* to) const {
    parallel_chunks(threads, static_cast<std::int64_t>(zeroed_bytes_), 1 << 16,
                    [to](std::int64_t begin, std::int64_t end) {
                      std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
                    });
    parallel_chunks(threads, outer_ * row_tiles_, 1,
                    [=, this](std::int64_t begin, std::int64_t end) { chunk(from, to, begin, end); });
  }

 private:
  void chunk(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) const {
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

  std::vector<AxisOffsets> axes_;  // outermost first; the last two in tiles
  std::int64_t outer_ = 1;         // product of all extents except the last two
  std::int64_t row_tiles_ = 1;
  std::size_t element_bytes_ = 1;
  std::size_t zeroed_bytes_ = 0;  // of the output, if it has padding
};

// `x_layout`: x's layout, with y's axes.
Plan plan_move(const OpCall& call, const TensorSpec& x, const Layout& x_layout, const TensorSpec& y,
               const CpuContext& context) {
  if (x.dtype != y.dtype) {
    refuse(call, fmt::format("{} and {} differ in type; expected the same", x.to_string(), y.to_string()));
  }
  if (x_layout.blocks.empty() && y.layout.blocks.empty() && y.shape.rank() > 0) {
    TensorSpec seen = x;
    seen.shape = y.shape;
    seen.layout = x_layout;
    std::vector<int> axes(static_cast<std::size_t>(y.shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    try {
      const OneDnnWork work = reorder_work(context.onednn, memory_shape(call, seen, axes), memory_shape(call, y, axes));
      if (!work.is_reference_code()) {
        return plan_of(work.implementation(), work.workspace_bytes(),
                       [work](std::span<const Tensor> bound, Workspace workspace) {
                         return work.bind(std::array{bound[0].data, bound[1].data}, workspace.data);
                       });
      }
    } catch (const Unsupported&) {
      // oneDNN lacks the type; the own move handles any type.
    }
  }
  const auto move = std::make_shared<const Move>(y.shape, x_layout, y.layout, size_of(y.dtype));
  return plan_of(own_implementation(), 0, [move, threads = context.threads](std::span<const Tensor> bound, Workspace) {
    return [move, threads, from = bound[0].data, to = bound[1].data] { move->run(threads, from, to); };
  });
}

// copy and repeat_rows. Any type; dense tensors with equal strides, or strided rows.
Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const std::int64_t elements = tensors[0].shape.elements();
  const bool one_run = tensors[0].shape == tensors[1].shape && share_one_run(tensors);
  const RowView from = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[0]);
  const RowView to = one_run ? from : rows_of(call, tensors[1]);
  const std::int64_t count =
      to.rows / std::max<std::int64_t>(1, from.rows);  // of each row; more than 1 for repeat_rows
  const auto size = static_cast<std::int64_t>(size_of(tensors[0].dtype));
  const bool streaming = should_stream(tensors[1].bytes());
  return plan_of(own_implementation(), 0, [=, threads = context.threads](std::span<const Tensor> bound, Workspace) {
    const std::byte* x = bound[0].data;
    std::byte* y = bound[1].data;
    return [=] {
      if (one_run) {
        parallel_chunks(threads, elements * size, element_grain * 4, [=](std::int64_t begin, std::int64_t end) {
          move_bytes(y + begin, x + begin, end - begin, streaming);
          stream_fence();
        });
        return;
      }
      parallel_rows(threads, to.rows, to.columns, [=](std::int64_t row) {
        move_bytes(y + row * to.stride * size, x + row / count * from.stride * size, to.columns * size, streaming);
      });
    };
  });
}

// oneDNN's reorder for plain strides and types it supports, else the own move.
Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const TensorSpec& x = tensors[0];
  if (!x.layout.blocks.empty()) refuse_layout(call, x, "plain strides");
  Layout permuted;
  for (const int axis : call.attributes.as<Transpose>().permutation) {
    permuted.strides.push_back(x.layout.strides[static_cast<std::size_t>(axis)]);
  }
  return plan_move(call, x, permuted, tensors[1], context);
}

Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_move(call, tensors[0], tensors[0].layout, tensors[1], context);
}

}  // namespace

Ops move_ops() {
  return {{copy_kind, plan_copy},
          {reorder_kind, plan_reorder},
          {repeat_rows_kind, plan_copy},
          {transpose_kind, plan_transpose}};
}

}  // namespace gpubench::cpu

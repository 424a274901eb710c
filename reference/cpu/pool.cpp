// Pooling, NHWC. Each position of the image that is written gathers the places that it depends on, those of its window
// or those of the windows that it lies in, and goes through them once for every vector of channels. Gradients are
// gathered too, so that no two threads write one element.
#include "reference/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/pool_taps.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

/// A pixel of the image that is written, and some of its channels.
struct Pixel {
  std::int64_t n, row, column;
  std::int64_t first_channel, channels;
  std::int64_t element;  ///< the first of them
  float* values;
};

struct PoolWork {
  PoolExtents extents;
  bool counts_padding = false, backward = false, averages = false;
  std::int64_t read_rows = 0, read_columns = 0;            ///< of the image that is read
  std::vector<PoolAxis::Range> row_ranges, column_ranges;  ///< of it, for each row and column written
  bool is_bf16 = false;
  int threads = 1;
  const std::byte* from = nullptr;       ///< x, or dy
  Sink to;                               ///< y, or dx
  std::uint8_t* index = nullptr;         ///< written by the largest element's forward
  const std::uint8_t* chosen = nullptr;  ///< read by its backward

  /// Calls compute(pixel) for every pixel of the image that is written. Blocks of neighbouring ones that stay in the
  /// first-level cache are stored at once.
  template <class Compute>
  void for_each_pixel(const Shape& out, const Compute& compute) const {
    const std::int64_t c = extents.c, width = out[2];
    const std::int64_t channels = std::min(c, block_elements);
    const std::int64_t most_columns = std::max<std::int64_t>(block_elements / c, 1);
    parallel_chunks(threads, out[0] * out[1], row_grain(width * c), [&](std::int64_t begin, std::int64_t end) {
      BlockBuffer buffer;
      for (std::int64_t line = begin; line < end; ++line) {
        for (std::int64_t column = 0; column < width; column += most_columns) {
          const std::int64_t columns = std::min(most_columns, width - column);
          for (std::int64_t channel = 0; channel < c; channel += channels) {
            const std::int64_t size = std::min(channels, c - channel);
            const std::int64_t first = (line * width + column) * c + channel;
            float* values = to.place(first, buffer);
            for (std::int64_t i = 0; i < columns; ++i)
              compute(
                  Pixel{line / out[1], line % out[1], column + i, channel, size, first + i * size, values + i * size});
            to.commit(first, columns * size, values);
          }
        }
      }
      stream_fence();
    });
  }

  /// Calls reduce(taps) with what `at` depends on, in turns where that is much: the elements of its window, or the
  /// windows that it lies in and its place in each.
  template <class Reduce>
  void over_taps(const Pixel& at, Taps& taps, const Reduce& reduce) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    const PoolAxis::Range rows = row_ranges[static_cast<std::size_t>(at.row)];
    const PoolAxis::Range columns = column_ranges[static_cast<std::size_t>(at.column)];
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t line = ((at.n * read_rows + row) * read_columns) * extents.c + at.first_channel;
      const std::int64_t within = (backward ? at.row - v.first(row) : row - v.first(at.row)) * h.window;
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        if (taps.count == Taps::most) {
          reduce(taps);
          taps.count = 0;
          taps.first_turn = false;
        }
        taps.place[taps.count] = line + column * extents.c;
        taps.number[taps.count] =
            static_cast<std::int32_t>(within + (backward ? at.column - h.first(column) : column - h.first(at.column)));
        taps.factor[taps.count++] = averages && backward ? reciprocal(row, column) : 1.0F;
      }
    }
    reduce(taps);
  }

  /// Calls compute(first element, kernels) with its type.
  template <class Compute>
  void typed(const Compute& compute) const {
    if (is_bf16) return compute(reinterpret_cast<const bf16*>(from), tap_kernels<bf16>());
    compute(reinterpret_cast<const float*>(from), tap_kernels<float>());
  }

  /// 1 / the number of elements of a window.
  [[nodiscard]] float reciprocal(std::int64_t row, std::int64_t column) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    return 1.0F / static_cast<float>(counts_padding ? v.window * h.window
                                                    : v.elements(row).size() * h.elements(column).size());
  }
};

struct MaxForward : PoolWork {
  void operator()() const {
    for_each_pixel(extents.output(), [this](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        typed([&](const auto* x, const auto& kernels) {
          kernels.keep_larger(x, found, at.channels, at.values, index + at.element);
        });
      });
    });
  }
};

struct MaxBackward : PoolWork {
  void operator()() const {
    for_each_pixel(extents.input(), [this](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        typed([&](const auto* dy, const auto& kernels) {
          kernels.add_chosen(dy, found, at.channels, at.values, chosen);
        });
      });
    });
  }
};

struct AverageForward : PoolWork {
  void operator()() const {
    for_each_pixel(extents.output(), [this](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        typed([&](const auto* x, const auto& kernels) { kernels.add_scaled(x, found, at.channels, at.values); });
      });
      runs().scale(at.values, reciprocal(at.row, at.column), at.channels, at.values);
    });
  }
};

struct AverageBackward : PoolWork {
  void operator()() const {
    for_each_pixel(extents.input(), [this](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        typed([&](const auto* dy, const auto& kernels) { kernels.add_scaled(dy, found, at.channels, at.values); });
      });
    });
  }
};

template <class Work>
Work pool_work(const OpCall& call, std::span<const TensorSpec> tensors, const TensorSpec& x,
               const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x", "y", "dx", "dy"});
  expect_type(call, operand, {"index"}, DType::u8);
  expect_row_major(call, operand, {"x", "y", "dx", "dy", "index"});
  const Pool& attributes = call.attributes.as<Pool>();
  Work work;
  work.extents = pool_extents(call.kind, attributes, x.shape);
  work.counts_padding = attributes.counts_padding;
  work.backward = call.kind == max_pool_backward_kind || call.kind == average_pool_backward_kind;
  work.averages = call.kind == average_pool_forward_kind || call.kind == average_pool_backward_kind;
  const auto ranges = [&](const PoolAxis& axis) {
    std::vector<PoolAxis::Range> of(static_cast<std::size_t>(work.backward ? axis.extent : axis.outputs()));
    for (std::size_t i = 0; i < of.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      of[i] = work.backward ? axis.windows(at) : axis.elements(at);
    }
    return of;
  };
  const PoolAxis &v = work.extents.vertical, &h = work.extents.horizontal;
  work.row_ranges = ranges(v);
  work.column_ranges = ranges(h);
  work.read_rows = work.backward ? v.outputs() : v.extent;
  work.read_columns = work.backward ? h.outputs() : h.extent;
  work.is_bf16 = x.dtype == DType::bf16;
  work.threads = context.threads;
  return work;
}

}  // namespace

Plan plan_max_pool_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return own_plan(call, pool_work<MaxForward>(call, tensors, tensors[0], context),
                  {{"x", to<&MaxForward::from>}, {"y", to<&MaxForward::to>}, {"index", to<&MaxForward::index>}});
}

Plan plan_max_pool_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return own_plan(call, pool_work<MaxBackward>(call, tensors, tensors[2], context),
                  {{"dy", to<&MaxBackward::from>}, {"index", to<&MaxBackward::chosen>}, {"dx", to<&MaxBackward::to>}});
}

Plan plan_average_pool_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return own_plan(call, pool_work<AverageForward>(call, tensors, tensors[0], context),
                  {{"x", to<&AverageForward::from>}, {"y", to<&AverageForward::to>}});
}

Plan plan_average_pool_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return own_plan(call, pool_work<AverageBackward>(call, tensors, tensors[1], context),
                  {{"dy", to<&AverageBackward::from>}, {"dx", to<&AverageBackward::to>}});
}

}  // namespace gpubench::cpu

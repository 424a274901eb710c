// Pooling, NHWC. A block is a run of neighbouring positions of an output row, or of the channels of one, that stays in
// the first-level cache. For each tap of the window, the positions that have it are one strided run through the other
// image: so a call works on a whole run, at borders too. Gradients are gathered, so that no two threads write one
// element.
#include "reference/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

using Taps = std::array<std::int32_t, block_elements>;
using Factors = std::array<float, block_elements>;

/// `count` runs of `channels` neighbours: those read begin `read` elements apart, those written `write`.
struct Runs {
  std::int64_t count, channels, read, write;
};

template <class T>
[[gnu::always_inline]] inline void keep_larger_runs(const T* x, std::int32_t tap, const Runs& runs, float* best,
                                                    std::int32_t* taps) {
  for (std::int64_t run = 0; run < runs.count; ++run) {
    const T* from = x + run * runs.read;
    float* to = best + run * runs.write;
    std::int32_t* chosen = taps + run * runs.write;
#pragma omp simd
    for (std::int64_t i = 0; i < runs.channels; ++i) {
      const float value = widen(from[i]);
      const bool larger = value > to[i] || value != value;  // a NaN is larger than any number
      to[i] = larger ? value : to[i];
      chosen[i] = larger ? tap : chosen[i];
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void add_chosen_runs(const T* dy, const std::uint8_t* chosen, std::uint8_t tap,
                                                   const Runs& runs, float* dx) {
  for (std::int64_t run = 0; run < runs.count; ++run) {
    const T* from = dy + run * runs.read;
    const std::uint8_t* which = chosen + run * runs.read;
    float* to = dx + run * runs.write;
#pragma omp simd
    for (std::int64_t i = 0; i < runs.channels; ++i) to[i] += which[i] == tap ? widen(from[i]) : 0.0F;
  }
}

/// The factor of each run.
template <class T>
[[gnu::always_inline]] inline void add_scaled_runs(const T* from_first, const float* factors, const Runs& runs,
                                                   float* sums) {
  for (std::int64_t run = 0; run < runs.count; ++run) {
    const T* from = from_first + run * runs.read;
    float* to = sums + run * runs.write;
    const float factor = factors[run];
#pragma omp simd
    for (std::int64_t i = 0; i < runs.channels; ++i) to[i] += widen(from[i]) * factor;
  }
}

// Functions that are cloned can be no templates.
GPUBENCH_VECTOR_CLONES
void keep_larger(const float* x, std::int32_t tap, const Runs& runs, float* best, std::int32_t* taps) {
  keep_larger_runs(x, tap, runs, best, taps);
}
GPUBENCH_VECTOR_CLONES
void keep_larger(const bf16* x, std::int32_t tap, const Runs& runs, float* best, std::int32_t* taps) {
  keep_larger_runs(x, tap, runs, best, taps);
}
GPUBENCH_VECTOR_CLONES
void add_chosen(const float* dy, const std::uint8_t* chosen, std::uint8_t tap, const Runs& runs, float* dx) {
  add_chosen_runs(dy, chosen, tap, runs, dx);
}
GPUBENCH_VECTOR_CLONES
void add_chosen(const bf16* dy, const std::uint8_t* chosen, std::uint8_t tap, const Runs& runs, float* dx) {
  add_chosen_runs(dy, chosen, tap, runs, dx);
}
GPUBENCH_VECTOR_CLONES
void add_scaled(const float* from, const float* factors, const Runs& runs, float* sums) {
  add_scaled_runs(from, factors, runs, sums);
}
GPUBENCH_VECTOR_CLONES
void add_scaled(const bf16* from, const float* factors, const Runs& runs, float* sums) {
  add_scaled_runs(from, factors, runs, sums);
}
GPUBENCH_VECTOR_CLONES
void scale_runs(const float* factors, const Runs& runs, float* y) {
  for (std::int64_t run = 0; run < runs.count; ++run) {
#pragma omp simd
    for (std::int64_t i = 0; i < runs.channels; ++i) y[run * runs.write + i] *= factors[run];
  }
}
GPUBENCH_VECTOR_CLONES
void store_taps(const std::int32_t* taps, std::int64_t count, std::uint8_t* index) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) index[i] = static_cast<std::uint8_t>(taps[i]);
}

/// A run of positions in one row of the image that is written, and of their channels.
struct Block {
  std::int64_t n, row, column, columns;  ///< `columns` positions from `column`
  std::int64_t first_channel, channels;
  float* values;  ///< [columns, channels]
};

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

struct PoolWork {
  PoolExtents extents;
  bool counts_padding = false;
  bool is_bf16 = false;
  int threads = 1;
  const std::byte* from = nullptr;       ///< x, or dy
  Sink to;                               ///< y, or dx
  std::uint8_t* index = nullptr;         ///< written by the largest element's forward
  const std::uint8_t* chosen = nullptr;  ///< read by its backward

  /// Calls compute(block, its first element) for every block of the image that is written.
  template <class Compute>
  void for_each_block(const Shape& out, const Compute& compute) const {
    const std::int64_t c = extents.c, width = out[2];
    const std::int64_t channels = std::min(c, block_elements);
    const std::int64_t most_columns = std::max<std::int64_t>(block_elements / c, 1);
    parallel_chunks(threads, out[0] * out[1], row_grain(width * c), [&](std::int64_t begin, std::int64_t end) {
      BlockBuffer buffer;
      for (std::int64_t line = begin; line < end; ++line) {
        for (std::int64_t column = 0; column < width; column += most_columns) {
          Block block{line / out[1], line % out[1], column, std::min(most_columns, width - column), 0, 0, nullptr};
          for (block.first_channel = 0; block.first_channel < c; block.first_channel += channels) {
            block.channels = std::min(channels, c - block.first_channel);
            const std::int64_t first = (line * width + column) * c + block.first_channel;
            const std::int64_t count = block.columns * block.channels;
            block.values = to.place(first, buffer);
            compute(block, first);
            to.commit(first, count, block.values);
          }
        }
      }
      stream_fence();
    });
  }

  /// Calls visit(tap, first element of x, runs, first position) for each tap and the block's positions that have it:
  /// windows [first, last] of the row, which read x at the stride.
  template <class Visit>
  void for_each_tap(const Block& block, const Visit& visit) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    const PoolAxis::Range rows = v.elements(block.row);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t s = 0; s < h.window; ++s) {
        const std::int64_t first = std::max(block.column, divided_up(h.pad - s, h.stride));
        const std::int64_t end = std::min(block.column + block.columns, divided_up(h.extent + h.pad - s, h.stride));
        if (first >= end) continue;
        const std::int64_t place = (block.n * v.extent + row) * h.extent + h.first(first) + s;
        visit((row - v.first(block.row)) * h.window + s, place * extents.c + block.first_channel,
              Runs{end - first, block.channels, h.stride * extents.c, block.channels}, first - block.column);
      }
    }
  }

  /// Calls visit(tap, first element of dy, runs, first position, window) for each tap by which windows reach positions
  /// of the block of dx: every stride-th of them.
  template <class Visit>
  void for_each_window(const Block& block, const Visit& visit) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    const PoolAxis::Range windows = v.windows(block.row);
    for (std::int64_t p = windows.begin; p < windows.end; ++p) {
      for (std::int64_t s = 0; s < h.window; ++s) {
        const std::int64_t first = std::max<std::int64_t>(0, divided_up(block.column + h.pad - s, h.stride));
        const std::int64_t end = std::min(h.outputs(), divided_up(block.column + block.columns + h.pad - s, h.stride));
        if (first >= end) continue;
        const std::int64_t place = (block.n * v.outputs() + p) * h.outputs() + first;
        visit((block.row - v.first(p)) * h.window + s, place * extents.c + block.first_channel,
              Runs{end - first, block.channels, extents.c, h.stride * block.channels},
              h.first(first) + s - block.column, PoolAxis::Range{p, first});
      }
    }
  }

  /// Calls compute(first element) with its type.
  template <class Compute>
  void typed(std::int64_t first, const Compute& compute) const {
    if (is_bf16) return compute(reinterpret_cast<const bf16*>(from) + first);
    compute(reinterpret_cast<const float*>(from) + first);
  }

  /// 1 / the number of elements of windows [row, column + i].
  void reciprocals(std::int64_t row, std::int64_t column, std::int64_t count, Factors& factors) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t elements =
          counts_padding ? v.window * h.window : v.elements(row).size() * h.elements(column + i).size();
      factors[static_cast<std::size_t>(i)] = 1.0F / static_cast<float>(elements);
    }
  }
};

struct MaxForward : PoolWork {
  void operator()() const {
    for_each_block(extents.output(), [this](const Block& block, std::int64_t place) {
      const std::int64_t count = block.columns * block.channels;
      Taps taps;
      // Where nothing is larger than the first of them, it is that: all are -infinity.
      std::fill_n(block.values, count, -std::numeric_limits<float>::infinity());
      const PoolAxis &v = extents.vertical, &h = extents.horizontal;
      const std::int64_t row = v.elements(block.row).begin - v.first(block.row);
      for (std::int64_t i = 0; i < block.columns; ++i) {
        const std::int64_t q = block.column + i;
        std::fill_n(taps.begin() + i * block.channels, block.channels,
                    static_cast<std::int32_t>(row * h.window + h.elements(q).begin - h.first(q)));
      }
      for_each_tap(block, [&](std::int64_t tap, std::int64_t first, const Runs& runs, std::int64_t position) {
        const std::int64_t at = position * block.channels;
        typed(first, [&](const auto* x) {
          keep_larger(x, static_cast<std::int32_t>(tap), runs, block.values + at, taps.data() + at);
        });
      });
      store_taps(taps.data(), count, index + place);
    });
  }
};

struct MaxBackward : PoolWork {
  void operator()() const {
    for_each_block(extents.input(), [this](const Block& block, std::int64_t) {
      std::fill_n(block.values, block.columns * block.channels, 0.0F);
      for_each_window(block, [&](std::int64_t tap, std::int64_t first, const Runs& runs, std::int64_t position,
                                 const PoolAxis::Range&) {
        typed(first, [&](const auto* dy) {
          add_chosen(dy, chosen + first, static_cast<std::uint8_t>(tap), runs,
                     block.values + position * block.channels);
        });
      });
    });
  }
};

struct AverageForward : PoolWork {
  void operator()() const {
    for_each_block(extents.output(), [this](const Block& block, std::int64_t) {
      Factors factors;
      std::fill_n(factors.begin(), block.columns, 1.0F);
      std::fill_n(block.values, block.columns * block.channels, 0.0F);
      for_each_tap(block, [&](std::int64_t, std::int64_t first, const Runs& runs, std::int64_t position) {
        typed(first,
              [&](const auto* x) { add_scaled(x, factors.data(), runs, block.values + position * block.channels); });
      });
      reciprocals(block.row, block.column, block.columns, factors);
      scale_runs(factors.data(), {block.columns, block.channels, 0, block.channels}, block.values);
    });
  }
};

struct AverageBackward : PoolWork {
  void operator()() const {
    for_each_block(extents.input(), [this](const Block& block, std::int64_t) {
      Factors factors;
      std::fill_n(block.values, block.columns * block.channels, 0.0F);
      for_each_window(block, [&](std::int64_t, std::int64_t first, const Runs& runs, std::int64_t position,
                                 const PoolAxis::Range& window) {
        reciprocals(window.begin, window.end, runs.count, factors);
        typed(first,
              [&](const auto* dy) { add_scaled(dy, factors.data(), runs, block.values + position * block.channels); });
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

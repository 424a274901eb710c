// Pooling, NHWC. Each written position gathers the elements of its window, or the windows that contain it, for one
// vector of channels after another. Gathering gradients avoids concurrent writes to an element.
#include "reference/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/pool.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

#ifndef GPUBENCH_POOL_TAPS
#define GPUBENCH_POOL_TAPS
namespace gpubench::cpu {

/// Sources of a position: first channels in the image that is read.
struct Taps {
  static constexpr std::size_t most = 256;  ///< of a window with an index; larger windows take several turns
  std::size_t count = 0;
  bool first_turn = true;
  std::array<std::int64_t, most> place;
  std::array<std::int32_t, most> number;  ///< index in its window
  std::array<float, most> factor;
};

template <class T>
struct TapKernels {
  /// The largest tap (NaN if any) and the number of the first tap that has it.
  void (*keep_larger)(const T* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index);
  /// Sum of taps whose index is their number; added to dx after the first turn.
  void (*add_chosen)(const T* dy, const Taps& taps, std::int64_t channels, float* dx, const std::uint8_t* index);
  /// Sum of taps times factors; added to y after the first turn.
  void (*add_scaled)(const T* x, const Taps& taps, std::int64_t channels, float* y);
};

}  // namespace gpubench::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

/// Calls group(number of vectors, lanes, first channel) for all channels: four vectors at a time, for longer runs per
/// tap and four independent chains.
template <class Group>
HWY_INLINE void over_groups(std::int64_t channels, const Group& group) {
  std::int64_t c = 0;
  for (; c + 4 * lane_count <= channels; c += 4 * lane_count) group(std::integral_constant<int, 4>(), Lanes<true>(), c);
  for (; c + lane_count <= channels; c += lane_count) group(std::integral_constant<int, 1>(), Lanes<true>(), c);
  if (c < channels) group(std::integral_constant<int, 1>(), Lanes<false>{channels - c}, c);
}

template <class T>
void keep_larger(const T* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index) {
  over_groups(channels, [&](auto vectors, auto lanes, std::int64_t c) HWY_ATTR {
    V best[vectors], chosen[vectors];
    for (int k = 0; k < vectors; ++k) {
      // If all taps are -infinity, the first one is chosen.
      best[k] = all(-std::numeric_limits<float>::infinity());
      chosen[k] = all(static_cast<float>(taps.number[0]));
    }
    for (std::size_t t = 0; t < taps.count; ++t) {
      const V number = all(static_cast<float>(taps.number[t]));
      for (int k = 0; k < vectors; ++k) {
        const V value = lanes.from(x + taps.place[t] + c + k * lane_count);
        const auto larger = hn::Or(value > best[k], hn::IsNaN(value));
        best[k] = hn::IfThenElse(larger, value, best[k]);
        chosen[k] = hn::IfThenElse(larger, number, chosen[k]);
      }
    }
    for (int k = 0; k < vectors; ++k) {
      lanes.to(best[k], y + c + k * lane_count);
      lanes.to(chosen[k], index + c + k * lane_count);
    }
  });
}

template <class Term>
HWY_INLINE void add_terms(const Taps& taps, std::int64_t channels, float* y, const Term& term) {
  over_groups(channels, [&](auto vectors, auto lanes, std::int64_t c) HWY_ATTR {
    V sum[vectors];
    for (int k = 0; k < vectors; ++k) sum[k] = taps.first_turn ? all(0.0F) : lanes.from(y + c + k * lane_count);
    for (std::size_t t = 0; t < taps.count; ++t) {
      for (int k = 0; k < vectors; ++k) sum[k] = term(t, lanes, taps.place[t] + c + k * lane_count, sum[k]);
    }
    for (int k = 0; k < vectors; ++k) lanes.to(sum[k], y + c + k * lane_count);
  });
}

template <class T>
void add_chosen(const T* dy, const Taps& taps, std::int64_t channels, float* dx, const std::uint8_t* index) {
  add_terms(taps, channels, dx, [&](std::size_t t, auto lanes, std::int64_t at, V sum) HWY_ATTR {
    const auto chosen = lanes.from(index + at) == all(static_cast<float>(taps.number[t]));
    return hn::Add(sum, hn::IfThenElseZero(chosen, lanes.from(dy + at)));
  });
}

template <class T>
void add_scaled(const T* x, const Taps& taps, std::int64_t channels, float* y) {
  add_terms(taps, channels, y, [&](std::size_t t, auto lanes, std::int64_t at, V sum) HWY_ATTR {
    return hn::MulAdd(lanes.from(x + at), all(taps.factor[t]), sum);
  });
}

TapKernels<float> TapKernelsF32() { return {keep_larger<float>, add_chosen<float>, add_scaled<float>}; }
TapKernels<bf16> TapKernelsBf16() { return {keep_larger<bf16>, add_chosen<bf16>, add_scaled<bf16>}; }

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(TapKernelsF32);
HWY_EXPORT(TapKernelsBf16);

/// A written pixel and a range of its channels.
struct Pixel {
  std::int64_t n, row, column;
  std::int64_t first_channel, channels;
  std::int64_t element;  ///< index of the first channel
  float* values;
};

struct PoolWork {
  PoolExtents extents;
  bool counts_padding = false, backward = false, averages = false;
  std::int64_t read_rows = 0, read_columns = 0;            ///< of the image that is read
  std::vector<PoolAxis::Range> row_ranges, column_ranges;  ///< read ranges per written row and column
  bool is_bf16 = false;
  int threads = 1;
  const std::byte* from = nullptr;  ///< x or dy
  Sink to;                          ///< y or dx
  std::uint8_t* index = nullptr;    ///< output of max_pool_forward, input of max_pool_backward

  void operator()() const {
    is_bf16 ? run(HWY_DYNAMIC_DISPATCH(TapKernelsBf16)()) : run(HWY_DYNAMIC_DISPATCH(TapKernelsF32)());
  }

  template <class T>
  void run(const TapKernels<T>& kernels) const {
    const auto* read = reinterpret_cast<const T*>(from);
    for_each_pixel(backward ? extents.input() : extents.output(), [&](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        if (averages) return kernels.add_scaled(read, found, at.channels, at.values);
        if (backward) return kernels.add_chosen(read, found, at.channels, at.values, index);
        kernels.keep_larger(read, found, at.channels, at.values, index + at.element);
      });
      if (averages && !backward) runs().scale(at.values, reciprocal(at.row, at.column), at.channels, at.values);
    });
  }

  /// Calls compute(pixel) for every written pixel. Blocks of neighbouring pixels that fit in the L1 cache are stored
  /// together.
  template <class Compute>
  void for_each_pixel(const Shape& out, const Compute& compute) const {
    const std::int64_t c = extents.c, width = out[2];
    const std::int64_t channels = std::min(c, block_elements);
    const std::int64_t max_columns = std::max<std::int64_t>(block_elements / c, 1);
    parallel_chunks(threads, out[0] * out[1], row_grain(width * c), [&](std::int64_t begin, std::int64_t end) {
      BlockBuffer buffer;
      for (std::int64_t line = begin; line < end; ++line) {
        for (std::int64_t column = 0; column < width; column += max_columns) {
          const std::int64_t columns = std::min(max_columns, width - column);
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

  /// Calls reduce(taps), in turns if there are many: the elements of `at`'s window, or the windows that contain it and
  /// its place in each.
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

  /// 1 / the number of counted elements of a window.
  [[nodiscard]] float reciprocal(std::int64_t row, std::int64_t column) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    return 1.0F / static_cast<float>(counts_padding ? v.padded_elements(row) * h.padded_elements(column)
                                                    : v.elements(row).size() * h.elements(column).size());
  }
};

// max_pool and average_pool, forward and backward; row-major.
Plan plan_pool(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x", "y", "dx", "dy"});
  expect_type(call, operand, {"index"}, DType::u8);
  expect_row_major(call, operand, {"x", "y", "dx", "dy", "index"});
  const Pool& attributes = call.attributes.as<Pool>();
  PoolWork work;
  work.backward = call.kind == max_pool_backward_kind || call.kind == average_pool_backward_kind;
  work.averages = call.kind == average_pool_forward_kind || call.kind == average_pool_backward_kind;
  const TensorSpec& x = operand[work.backward ? "dx" : "x"];
  work.extents = pool_extents(call.kind, attributes, x.shape);
  work.counts_padding = attributes.counts_padding;
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
  return own_plan(call, work,
                  {{"x?", to<&PoolWork::from>},
                   {"dy?", to<&PoolWork::from>},
                   {"y?", to<&PoolWork::to>},
                   {"dx?", to<&PoolWork::to>},
                   {"index?", to<&PoolWork::index>}});
}

}  // namespace

Ops pool_ops() {
  return {{average_pool_backward_kind, plan_pool},
          {average_pool_forward_kind, plan_pool},
          {max_pool_backward_kind, plan_pool},
          {max_pool_forward_kind, plan_pool}};
}

}  // namespace gpubench::cpu
#endif

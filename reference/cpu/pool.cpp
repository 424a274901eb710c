// Pooling, NHWC. Each position of the image that is written gathers the places that it depends on, those of its window
// or those of the windows that it lies in, and goes through them once for every vector of channels. Gradients are
// gathered too, so that no two threads write one element.
#include "reference/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/softmax.h"
#include "reference/cpu/vector_avx512.h"

namespace gpubench::cpu {
namespace {

/// What a position depends on: first channels in the image that is read.
struct Taps {
  static constexpr std::size_t most = 256;  ///< of a window with an index; larger ones are summed in several turns
  std::size_t count = 0;
  bool first_turn = true;
  std::array<std::int64_t, most> place;
  std::array<std::int32_t, most> number;  ///< in its window
  std::array<float, most> factor;
};

// What a window has found so far: in memory in portable loops, which run over the channels of one tap after the other,
// and in registers on AVX-512.

template <class T>
[[gnu::always_inline]] inline void keep_larger_runs(const T* x, const Taps& taps, std::int64_t channels, float* y,
                                                    std::uint8_t* index) {
  // Where nothing is larger than the first of them, it is that: all are -infinity.
  std::fill_n(y, channels, -std::numeric_limits<float>::infinity());
  std::fill_n(index, channels, static_cast<std::uint8_t>(taps.number[0]));
  for (std::size_t t = 0; t < taps.count; ++t) {
    const T* from = x + taps.place[t];
    const auto number = static_cast<std::uint8_t>(taps.number[t]);
#pragma omp simd
    for (std::int64_t i = 0; i < channels; ++i) {
      const float value = widen(from[i]);
      const bool larger = value > y[i] || value != value;  // a NaN is larger than any number
      y[i] = larger ? value : y[i];
      index[i] = larger ? number : index[i];
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void add_chosen_runs(const T* dy, const std::uint8_t* index, const Taps& taps,
                                                   std::int64_t channels, float* dx) {
  if (taps.first_turn) std::fill_n(dx, channels, 0.0F);
  for (std::size_t t = 0; t < taps.count; ++t) {
    const T* from = dy + taps.place[t];
    const std::uint8_t* which = index + taps.place[t];
#pragma omp simd
    for (std::int64_t i = 0; i < channels; ++i) dx[i] += which[i] == taps.number[t] ? widen(from[i]) : 0.0F;
  }
}

template <class T>
[[gnu::always_inline]] inline void add_scaled_runs(const T* x, const Taps& taps, std::int64_t channels, float* y) {
  if (taps.first_turn) std::fill_n(y, channels, 0.0F);
  for (std::size_t t = 0; t < taps.count; ++t) {
    const T* from = x + taps.place[t];
#pragma omp simd
    for (std::int64_t i = 0; i < channels; ++i) y[i] += widen(from[i]) * taps.factor[t];
  }
}

// Functions that are cloned can be no templates.
GPUBENCH_VECTOR_CLONES
void keep_larger(const float* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index) {
  keep_larger_runs(x, taps, channels, y, index);
}
GPUBENCH_VECTOR_CLONES
void keep_larger(const bf16* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index) {
  keep_larger_runs(x, taps, channels, y, index);
}
GPUBENCH_VECTOR_CLONES
void add_chosen(const float* dy, const std::uint8_t* index, const Taps& taps, std::int64_t channels, float* dx) {
  add_chosen_runs(dy, index, taps, channels, dx);
}
GPUBENCH_VECTOR_CLONES
void add_chosen(const bf16* dy, const std::uint8_t* index, const Taps& taps, std::int64_t channels, float* dx) {
  add_chosen_runs(dy, index, taps, channels, dx);
}
GPUBENCH_VECTOR_CLONES
void add_scaled(const float* x, const Taps& taps, std::int64_t channels, float* y) {
  add_scaled_runs(x, taps, channels, y);
}
GPUBENCH_VECTOR_CLONES
void add_scaled(const bf16* x, const Taps& taps, std::int64_t channels, float* y) {
  add_scaled_runs(x, taps, channels, y);
}

namespace wide {

#if defined(GPUBENCH_HAS_AVX512_CODE)

using avx512::all;
using avx512::first_lanes;
using avx512::lanes;

[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 load(__mmask16 mask, const float* from) {
  return _mm512_maskz_loadu_ps(mask, from);
}
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 load(__mmask16 mask, const bf16* from) {
  const __m512i bits = _mm512_maskz_cvtepu16_epi32(0xFFFF, _mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, bits, 16));
}

/// Calls group(how many vectors, first channel, mask) until all channels are done: four vectors at a time, so that a
/// tap is read in longer runs and four chains of results are under way.
template <class Group>
[[gnu::always_inline]] GPUBENCH_AVX512 inline void over_groups(std::int64_t channels, const Group& group) {
  std::int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) group(std::integral_constant<int, 4>(), c, __mmask16{0xFFFF});
  for (; c < channels; c += lanes) group(std::integral_constant<int, 1>(), c, first_lanes(channels - c));
}

template <class T>
GPUBENCH_AVX512 void keep_larger(const T* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index) {
  over_groups(channels, [&](auto vectors, std::int64_t c, __mmask16 mask) GPUBENCH_AVX512 {
    __m512 best[vectors];
    __m512i chosen[vectors];
    for (int k = 0; k < vectors; ++k) {
      best[k] = all(-std::numeric_limits<float>::infinity());
      chosen[k] = _mm512_set1_epi32(taps.number[0]);
    }
    for (std::size_t t = 0; t < taps.count; ++t) {
      const __m512i number = _mm512_set1_epi32(taps.number[t]);
      for (int k = 0; k < vectors; ++k) {
        const __m512 value = load(mask, x + taps.place[t] + c + k * lanes);
        const auto larger = static_cast<__mmask16>(_mm512_cmp_ps_mask(value, best[k], _CMP_GT_OQ) |
                                                   _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q));
        best[k] = _mm512_mask_mov_ps(best[k], larger, value);
        chosen[k] = _mm512_mask_mov_epi32(chosen[k], larger, number);
      }
    }
    for (int k = 0; k < vectors; ++k) {
      _mm512_mask_storeu_ps(y + c + k * lanes, mask, best[k]);
      _mm512_mask_cvtepi32_storeu_epi8(index + c + k * lanes, mask, chosen[k]);
    }
  });
}

template <class T>
GPUBENCH_AVX512 void add_chosen(const T* dy, const std::uint8_t* index, const Taps& taps, std::int64_t channels,
                                float* dx) {
  over_groups(channels, [&](auto vectors, std::int64_t c, __mmask16 mask) GPUBENCH_AVX512 {
    __m512 sum[vectors];
    for (int k = 0; k < vectors; ++k) sum[k] = taps.first_turn ? all(0.0F) : load(mask, dx + c + k * lanes);
    for (std::size_t t = 0; t < taps.count; ++t) {
      const __m128i number = _mm_set1_epi8(static_cast<char>(taps.number[t]));
      for (int k = 0; k < vectors; ++k) {
        const std::int64_t at = taps.place[t] + c + k * lanes;
        const __mmask16 chosen = _mm_mask_cmpeq_epi8_mask(mask, _mm_maskz_loadu_epi8(mask, index + at), number);
        sum[k] = _mm512_mask_add_ps(sum[k], chosen, sum[k], load(mask, dy + at));
      }
    }
    for (int k = 0; k < vectors; ++k) _mm512_mask_storeu_ps(dx + c + k * lanes, mask, sum[k]);
  });
}

template <class T>
GPUBENCH_AVX512 void add_scaled(const T* x, const Taps& taps, std::int64_t channels, float* y) {
  over_groups(channels, [&](auto vectors, std::int64_t c, __mmask16 mask) GPUBENCH_AVX512 {
    __m512 sum[vectors];
    for (int k = 0; k < vectors; ++k) sum[k] = taps.first_turn ? all(0.0F) : load(mask, y + c + k * lanes);
    for (std::size_t t = 0; t < taps.count; ++t) {
      const __m512 factor = all(taps.factor[t]);
      for (int k = 0; k < vectors; ++k)
        sum[k] = _mm512_fmadd_ps(load(mask, x + taps.place[t] + c + k * lanes), factor, sum[k]);
    }
    for (int k = 0; k < vectors; ++k) _mm512_mask_storeu_ps(y + c + k * lanes, mask, sum[k]);
  });
}

#else

template <class... Arguments>
void keep_larger(Arguments...) {}
template <class... Arguments>
void add_chosen(Arguments...) {}
template <class... Arguments>
void add_scaled(Arguments...) {}

#endif

}  // namespace wide

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
  bool use_avx512 = avx512::available();
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

  /// Calls compute(first element) with its type.
  template <class Compute>
  void typed(const Compute& compute) const {
    if (is_bf16) return compute(reinterpret_cast<const bf16*>(from));
    compute(reinterpret_cast<const float*>(from));
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
        typed([&](const auto* x) {
          use_avx512 ? wide::keep_larger(x, found, at.channels, at.values, index + at.element)
                     : keep_larger(x, found, at.channels, at.values, index + at.element);
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
        typed([&](const auto* dy) {
          use_avx512 ? wide::add_chosen(dy, chosen, found, at.channels, at.values)
                     : add_chosen(dy, chosen, found, at.channels, at.values);
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
        typed([&](const auto* x) {
          use_avx512 ? wide::add_scaled(x, found, at.channels, at.values)
                     : add_scaled(x, found, at.channels, at.values);
        });
      });
      multiply_block(at.values, reciprocal(at.row, at.column), at.channels, at.values);
    });
  }
};

struct AverageBackward : PoolWork {
  void operator()() const {
    for_each_pixel(extents.input(), [this](const Pixel& at) {
      Taps taps;
      over_taps(at, taps, [&](const Taps& found) {
        typed([&](const auto* dy) {
          use_avx512 ? wide::add_scaled(dy, found, at.channels, at.values)
                     : add_scaled(dy, found, at.channels, at.values);
        });
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

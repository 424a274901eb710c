// Pooling, NHWC: a thread works on a run of positions, each in blocks of neighbouring channels that stay in the
// first-level cache. Gradients are gathered, window by window, so that no two threads write one element.
#include "reference/ops/pool.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

using Taps = std::array<std::int32_t, block_elements>;

/// A NaN is larger than any number.
GPUBENCH_VECTOR_CLONES
void keep_larger(const float* x, std::int32_t tap, std::int64_t count, float* best, std::int32_t* taps) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const bool larger = x[i] > best[i] || x[i] != x[i];
    best[i] = larger ? x[i] : best[i];
    taps[i] = larger ? tap : taps[i];
  }
}

GPUBENCH_VECTOR_CLONES
void add_chosen(const float* dy, const std::uint8_t* chosen, std::uint8_t tap, std::int64_t count, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] += chosen[i] == tap ? dy[i] : 0.0F;
}

GPUBENCH_VECTOR_CLONES
void add_scaled(const float* dy, float factor, std::int64_t count, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] += dy[i] * factor;
}

GPUBENCH_VECTOR_CLONES
void scale_block(float factor, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] *= factor;
}

struct Position {
  std::int64_t n = 0, h = 0, w = 0;
};

/// Where the elements of an image [n, h, w, c] begin.
struct Image {
  Shape shape;
  [[nodiscard]] Position at(std::int64_t position) const {
    return {position / (shape[1] * shape[2]), position / shape[2] % shape[1], position % shape[2]};
  }
  [[nodiscard]] std::int64_t first(const Position& at) const {
    return ((at.n * shape[1] + at.h) * shape[2] + at.w) * shape[3];
  }
};

struct PoolWork {
  PoolExtents extents;
  bool counts_padding = false;
  int threads = 1;
  Source from;                           ///< x, or dy
  Sink to;                               ///< y, or dx
  std::uint8_t* index = nullptr;         ///< written by the largest element's forward
  const std::uint8_t* chosen = nullptr;  ///< read by its backward

  /// Calls compute(position, first channel, count, block) for every block of the output.
  template <class Compute>
  void for_each_block(const Image& out, const Compute& compute) const {
    const std::int64_t channels = extents.c;
    parallel_chunks(threads, out.shape.elements() / channels, row_grain(channels),
                    [&](std::int64_t begin, std::int64_t end) {
                      BlockBuffer result;
                      for (std::int64_t i = begin; i < end; ++i) {
                        const Position at = out.at(i);
                        for (std::int64_t c = 0; c < channels; c += block_elements) {
                          const std::int64_t count = std::min(block_elements, channels - c);
                          float* block = to.place(i * channels + c, result);
                          compute(at, c, count, block);
                          to.commit(i * channels + c, count, block);
                        }
                      }
                      stream_fence();
                    });
  }

  /// Calls visit(tap, block of x) for each element of the window at a position of the output.
  template <class Visit>
  void for_each_tap(const Position& at, std::int64_t c, std::int64_t count, const Visit& visit) const {
    const Image in{extents.input()};
    const PoolAxis::Range rows = extents.vertical.elements(at.h), columns = extents.horizontal.elements(at.w);
    BlockBuffer buffer;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      const std::int64_t tap = (h - extents.vertical.first(at.h)) * extents.horizontal.window;
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        visit(static_cast<std::int32_t>(tap + w - extents.horizontal.first(at.w)),
              from.read(in.first({at.n, h, w}) + c, count, buffer));
      }
    }
  }

  /// Calls visit(window, first element of dy, block of dy) for each window that a position of dx lies in.
  template <class Visit>
  void for_each_window(const Position& at, std::int64_t c, std::int64_t count, const Visit& visit) const {
    const Image out{extents.output()};
    const PoolAxis::Range rows = extents.vertical.windows(at.h), columns = extents.horizontal.windows(at.w);
    BlockBuffer buffer;
    for (std::int64_t p = rows.begin; p < rows.end; ++p) {
      for (std::int64_t q = columns.begin; q < columns.end; ++q) {
        const Position window{at.n, p, q};
        const std::int64_t first = out.first(window) + c;
        visit(window, first, from.read(first, count, buffer));
      }
    }
  }

  [[nodiscard]] float reciprocal(const Position& window) const {
    const PoolAxis &v = extents.vertical, &h = extents.horizontal;
    return 1.0F / static_cast<float>(counts_padding ? v.window * h.window
                                                    : v.elements(window.h).size() * h.elements(window.w).size());
  }
};

struct MaxForward : PoolWork {
  void operator()() const {
    for_each_block({extents.output()}, [this](const Position& at, std::int64_t c, std::int64_t count, float* y) {
      Taps taps;
      bool first = true;
      for_each_tap(at, c, count, [&](std::int32_t tap, const float* x) {
        if (first) {
          std::copy_n(x, count, y);
          std::fill_n(taps.data(), count, tap);
        } else {
          keep_larger(x, tap, count, y, taps.data());
        }
        first = false;
      });
      const std::int64_t place = Image{extents.output()}.first(at) + c;
      for (std::int64_t i = 0; i < count; ++i)
        index[place + i] = static_cast<std::uint8_t>(taps[static_cast<std::size_t>(i)]);
    });
  }
};

struct MaxBackward : PoolWork {
  void operator()() const {
    for_each_block({extents.input()}, [this](const Position& at, std::int64_t c, std::int64_t count, float* dx) {
      std::fill_n(dx, count, 0.0F);
      for_each_window(at, c, count, [&](const Position& window, std::int64_t first, const float* dy) {
        const std::int64_t tap = (at.h - extents.vertical.first(window.h)) * extents.horizontal.window + at.w -
                                 extents.horizontal.first(window.w);
        add_chosen(dy, chosen + first, static_cast<std::uint8_t>(tap), count, dx);
      });
    });
  }
};

struct AverageForward : PoolWork {
  void operator()() const {
    for_each_block({extents.output()}, [this](const Position& at, std::int64_t c, std::int64_t count, float* y) {
      std::fill_n(y, count, 0.0F);
      for_each_tap(at, c, count, [&](std::int32_t, const float* x) { add_run(x, count, y); });
      scale_block(reciprocal(at), count, y);
    });
  }
};

struct AverageBackward : PoolWork {
  void operator()() const {
    for_each_block({extents.input()}, [this](const Position& at, std::int64_t c, std::int64_t count, float* dx) {
      std::fill_n(dx, count, 0.0F);
      for_each_window(at, c, count, [&](const Position& window, std::int64_t, const float* dy) {
        add_scaled(dy, reciprocal(window), count, dx);
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

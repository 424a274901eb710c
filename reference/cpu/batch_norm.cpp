// Batch normalization: sums down channels, then one pass over the data. Each thread takes the moments of its rows in
// f32 in the workspace, four rows at a time (Chan, Golub, LeVeque 1983), so that x is read once for them; the threads'
// are merged in order.
#include "reference/ops/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

/// Of f32 or bf16: what every loop here is a template over, for vector code that widens and rounds as it goes.
struct DataRows {
  DataRows() = default;
  DataRows(const Tensor& tensor, bool streams)
      : first(tensor.data), is_bf16(tensor.spec.dtype == DType::bf16), streaming(streams) {}

  template <class T>
  [[nodiscard]] T* at(std::int64_t element) const {
    return reinterpret_cast<T*>(first) + element;
  }
  std::byte* first = nullptr;
  bool is_bf16 = false, streaming = false;
};

/// A block on its way to memory: made in place, or in a buffer where it goes around the caches.
template <class T>
class StoredBlock {
 public:
  [[gnu::always_inline]] T* place(const DataRows& to, std::int64_t element) {
    return to.streaming ? values_.data() : to.at<T>(element);
  }
  [[gnu::always_inline]] void commit(const DataRows& to, std::int64_t element, std::int64_t count) const {
    if (!to.streaming) return;
    stream_store(reinterpret_cast<std::byte*>(to.at<T>(element)), reinterpret_cast<const std::byte*>(values_.data()),
                 static_cast<std::size_t>(count) * sizeof(T));
  }

 private:
  alignas(64) std::array<T, block_elements> values_;
};

/// Merges moments of `group` rows with those of the `before` rows that m2, the sum of squared deviations, and mean are
/// of.
struct MergeWeights {
  float mean, m2;
  MergeWeights(std::int64_t before, std::int64_t group)
      : mean(static_cast<float>(group) / static_cast<float>(before + group)), m2(static_cast<float>(before) * mean) {}
};

GPUBENCH_VECTOR_CLONES
void merge_moments(const float* of_group, const float* m2_of_group, MergeWeights weights, std::int64_t count,
                   float* mean, float* m2) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float delta = of_group[i] - mean[i];
    mean[i] += delta * weights.mean;
    m2[i] += m2_of_group[i] + delta * delta * weights.m2;
  }
}

/// What both ways have in common: parts of the rows, each with two sums per channel; two vectors of what is made of
/// them; and a pass over all rows.
struct ChannelWork {
  int threads = 1;
  std::int64_t rows = 0, channels = 0;
  float* workspace = nullptr;  ///< [parts + 1, 2, channels]

  [[nodiscard]] int parts() const { return chunk_count(threads, rows, row_grain(channels)); }
  [[nodiscard]] Chunk part(std::int64_t index) const {
    return chunk_of(rows, row_grain(channels), parts(), static_cast<int>(index));
  }
  [[nodiscard]] float* vector(std::int64_t index, int which) const {
    return workspace + (2 * index + which) * channels;
  }
  /// Of what the last pass reads.
  [[nodiscard]] float* made(int which) const { return vector(parts(), which); }
  [[nodiscard]] std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(2 * (parts() + 1) * channels) * sizeof(float);
  }

  template <class Sum, class Combine>
  void take_sums(const Sum& sum, const Combine& combine) const {
    parallel_chunks(threads, parts(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) {
        std::fill_n(vector(index, 0), 2 * channels, 0.0F);
        sum(part(index), vector(index, 0), vector(index, 1));
      }
      stream_fence();
    });
    parallel_chunks(threads, channels, element_grain, combine);
  }
  /// Calls write(rows) for every part.
  template <class Write>
  void write_rows(const Write& write) const {
    parallel_chunks(threads, rows, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      write(Chunk{begin, end});
      stream_fence();
    });
  }

  /// Calls make(first element, first channel, count) for the blocks of these rows.
  template <class Make>
  [[gnu::always_inline]] void each_block(const Chunk& of, const Make& make) const {
    for (std::int64_t row = of.begin; row < of.end; ++row) {
      for (std::int64_t c = 0; c < channels; c += block_elements) {
        make(row * channels + c, c, std::min(block_elements, channels - c));
      }
    }
  }
};

struct BatchForward : ChannelWork {
  float epsilon = 0.0F, momentum = 0.0F;
  bool relu = false, residual = false;
  DataRows x, r, y;
  const float *gamma = nullptr, *beta = nullptr;
  float *mean = nullptr, *rstd = nullptr, *running_mean = nullptr, *running_var = nullptr;

  void operator()() const;

  template <class T>
  [[gnu::always_inline]] void add_moments_of(const Chunk& of, float* means, float* m2s) const {
    constexpr std::int64_t group = 4;
    std::int64_t row = of.begin;
    for (; row + group <= of.end; row += group) {
      const MergeWeights weights(row - of.begin, group);
      const T *a = x.at<T>(row * channels), *b = a + channels, *c = b + channels, *d = c + channels;
#pragma omp simd
      for (std::int64_t i = 0; i < channels; ++i) {
        const float wa = widen(a[i]), wb = widen(b[i]), wc = widen(c[i]), wd = widen(d[i]);
        const float of_group = ((wa + wb) + (wc + wd)) * 0.25F;
        const float da = wa - of_group, db = wb - of_group, dc = wc - of_group, dd = wd - of_group;
        const float delta = of_group - means[i];
        means[i] += delta * weights.mean;
        m2s[i] += ((da * da + db * db) + (dc * dc + dd * dd)) + delta * delta * weights.m2;
      }
    }
    for (; row < of.end; ++row) {
      const MergeWeights weights(row - of.begin, 1);
      const T* a = x.at<T>(row * channels);
#pragma omp simd
      for (std::int64_t i = 0; i < channels; ++i) {
        const float delta = widen(a[i]) - means[i];
        means[i] += delta * weights.mean;
        m2s[i] += delta * delta * weights.m2;
      }
    }
  }

  template <class T>
  [[gnu::always_inline]] void normalize_of(const Chunk& of) const {
    StoredBlock<T> block;
    each_block(of, [&](std::int64_t first, std::int64_t channel, std::int64_t count) {
      const T *from = x.at<T>(first), *added = residual ? r.at<T>(first) : from;
      const float *m = mean + channel, *scale = made(0) + channel, *b = beta + channel;
      T* to = block.place(y, first);
      const auto cut = [](float value) { return value < 0.0F ? 0.0F : value; };  // a NaN spreads
      if (!relu) {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) to[i] = narrow<T>((widen(from[i]) - m[i]) * scale[i] + b[i]);
      } else if (!residual) {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) to[i] = narrow<T>(cut((widen(from[i]) - m[i]) * scale[i] + b[i]));
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i)
          to[i] = narrow<T>(cut((widen(from[i]) - m[i]) * scale[i] + b[i] + widen(added[i])));
      }
      block.commit(y, first, count);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t index = 1; index < parts(); ++index) {
      merge_moments(vector(index, 0) + begin, vector(index, 1) + begin,
                    MergeWeights(part(index).begin, part(index).end - part(index).begin), end - begin,
                    vector(0, 0) + begin, vector(0, 1) + begin);
    }
    const auto n = static_cast<float>(rows);
    const auto moving = [this](float& running, float statistic) {
      running = (1.0F - momentum) * running + momentum * statistic;
    };
    for (std::int64_t c = begin; c < end; ++c) {
      const float m2 = vector(0, 1)[c];
      mean[c] = vector(0, 0)[c];
      rstd[c] = 1.0F / std::sqrt(m2 / n + epsilon);
      made(0)[c] = gamma[c] * rstd[c];
      moving(running_mean[c], mean[c]);
      moving(running_var[c], m2 / (n - 1.0F));
    }
  }
};

GPUBENCH_VECTOR_CLONES
void add_moments(const BatchForward& work, const Chunk& of, float* means, float* m2s) {
  work.x.is_bf16 ? work.add_moments_of<bf16>(of, means, m2s) : work.add_moments_of<float>(of, means, m2s);
}

GPUBENCH_VECTOR_CLONES
void normalize(const BatchForward& work, const Chunk& of) {
  work.x.is_bf16 ? work.normalize_of<bf16>(of) : work.normalize_of<float>(of);
}

void BatchForward::operator()() const {
  take_sums([this](const Chunk& of, float* means, float* m2s) { add_moments(*this, of, means, m2s); },
            [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  write_rows([this](const Chunk& of) { normalize(*this, of); });
}

/// What the passes of the backward take for dy: that itself; with a ReLU, dr, which may be a sum and may be stored.
enum class Slope { given, selected, stored, summed };

struct BatchBackward : ChannelWork {
  Slope slope = Slope::given;
  DataRows dy, x, y, dy2, dx, dr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;

  void operator()() const;

  template <class T, Slope of>
  [[gnu::always_inline]] static float slope_of(T dy, T y, T dy2) {
    const float sum = of == Slope::summed ? widen(dy) + widen(dy2) : widen(dy);
    return of != Slope::given && widen(y) <= 0.0F ? 0.0F : sum;
  }

  /// Of a row, and of the next if it is `both`.
  template <class T, Slope of, bool both>
  [[gnu::always_inline]] void add_row(std::int64_t row, float* plain, float* weighted) const {
    constexpr bool selects = of != Slope::given, sums = of == Slope::summed, stores = sums || of == Slope::stored;
    StoredBlock<T> block, next_block;
    for (std::int64_t c = 0; c < channels; c += block_elements) {
      const std::int64_t count = std::min(block_elements, channels - c);
      const std::int64_t at = row * channels + c, next = both ? at + channels : at;
      const T *a = dy.at<T>(at), *b = dy.at<T>(next), *x_a = x.at<T>(at), *x_b = x.at<T>(next);
      const T *y_a = selects ? y.at<T>(at) : a, *y_b = selects ? y.at<T>(next) : b;
      const T *dy2_a = sums ? dy2.at<T>(at) : a, *dy2_b = sums ? dy2.at<T>(next) : b;
      T *dr_a = stores ? block.place(dr, at) : nullptr, *dr_b = stores ? next_block.place(dr, next) : nullptr;
      const float* m = mean + c;
      float *to_plain = plain + c, *to_weighted = weighted + c;
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        const float slope = slope_of<T, of>(a[i], y_a[i], dy2_a[i]);
        if constexpr (stores) dr_a[i] = narrow<T>(slope);
        if constexpr (both) {
          const float next_slope = slope_of<T, of>(b[i], y_b[i], dy2_b[i]);
          if constexpr (stores) dr_b[i] = narrow<T>(next_slope);
          to_plain[i] += slope + next_slope;
          to_weighted[i] += slope * (widen(x_a[i]) - m[i]) + next_slope * (widen(x_b[i]) - m[i]);
        } else {
          to_plain[i] += slope;
          to_weighted[i] += slope * (widen(x_a[i]) - m[i]);
        }
      }
      if constexpr (stores) block.commit(dr, at, count);
      if constexpr (stores && both) next_block.commit(dr, next, count);
    }
  }

  template <class T, Slope of>
  [[gnu::always_inline]] void add_rows_of(const Chunk& range, float* plain, float* weighted) const {
    std::int64_t row = range.begin;
    for (; row + 1 < range.end; row += 2) add_row<T, of, true>(row, plain, weighted);
    if (row < range.end) add_row<T, of, false>(row, plain, weighted);
  }

  template <class T, Slope of>
  [[gnu::always_inline]] void project_of(const Chunk& range) const {
    const float *factors = made(0), *plains = made(1), *weighteds = vector(0, 0);
    StoredBlock<T> block;
    each_block(range, [&](std::int64_t first, std::int64_t c, std::int64_t count) {
      const T* slopes = of == Slope::stored ? dr.at<T>(first) : dy.at<T>(first);
      const T *selecting = of == Slope::selected ? y.at<T>(first) : slopes, *xs = x.at<T>(first);
      const float *m = mean + c, *factor = factors + c, *of_plain = plains + c, *of_weighted = weighteds + c;
      T* to = block.place(dx, first);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        constexpr Slope read = of == Slope::selected ? of : Slope::given;
        const float value = slope_of<T, read>(slopes[i], selecting[i], slopes[i]);
        to[i] = narrow<T>(factor[i] * ((value - of_plain[i]) - (widen(xs[i]) - m[i]) * of_weighted[i]));
      }
      block.commit(dx, first, count);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    const auto n = static_cast<float>(rows);
    float *plain = vector(0, 0), *weighted = vector(0, 1);
    for (std::int64_t index = 1; index < parts(); ++index) {
      add_run(vector(index, 0) + begin, end - begin, plain + begin);
      add_run(vector(index, 1) + begin, end - begin, weighted + begin);
    }
    for (std::int64_t c = begin; c < end; ++c) {
      dbeta[c] = plain[c];
      dgamma[c] = weighted[c] * rstd[c];
      made(0)[c] = gamma[c] * rstd[c];
      made(1)[c] = dbeta[c] / n;
      plain[c] = dgamma[c] * rstd[c] / n;
    }
  }
};

template <class T>
[[gnu::always_inline]] inline void add_rows_as(const BatchBackward& work, const Chunk& of, float* plain,
                                               float* weighted) {
  switch (work.slope) {
    case Slope::given: return work.add_rows_of<T, Slope::given>(of, plain, weighted);
    case Slope::selected: return work.add_rows_of<T, Slope::selected>(of, plain, weighted);
    case Slope::stored: return work.add_rows_of<T, Slope::stored>(of, plain, weighted);
    case Slope::summed: return work.add_rows_of<T, Slope::summed>(of, plain, weighted);
  }
}

/// What was stored is read.
template <class T>
[[gnu::always_inline]] inline void project_as(const BatchBackward& work, const Chunk& of) {
  switch (work.slope) {
    case Slope::given: return work.project_of<T, Slope::given>(of);
    case Slope::selected: return work.project_of<T, Slope::selected>(of);
    default: return work.project_of<T, Slope::stored>(of);
  }
}

GPUBENCH_VECTOR_CLONES
void add_rows(const BatchBackward& work, const Chunk& of, float* plain, float* weighted) {
  work.x.is_bf16 ? add_rows_as<bf16>(work, of, plain, weighted) : add_rows_as<float>(work, of, plain, weighted);
}

GPUBENCH_VECTOR_CLONES
void project(const BatchBackward& work, const Chunk& of) {
  work.x.is_bf16 ? project_as<bf16>(work, of) : project_as<float>(work, of);
}

void BatchBackward::operator()() const {
  take_sums([this](const Chunk& of, float* plain, float* weighted) { add_rows(*this, of, plain, weighted); },
            [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  write_rows([this](const Chunk& of) { project(*this, of); });
}

template <class Work>
Work channel_work(const OpCall& call, const Named<TensorSpec>& operand, const CpuContext& context) {
  const std::initializer_list<std::string_view> data{"x", "y", "r", "dy", "dy2", "dx", "dr"};
  const std::initializer_list<std::string_view> of_channels{"gamma",        "beta",        "mean",   "rstd",
                                                            "running_mean", "running_var", "dgamma", "dbeta"};
  expect_f32_or_bf16(call, operand, data);
  expect_row_major(call, operand, data);
  expect_type(call, operand, of_channels, DType::f32);
  expect_row_major(call, operand, of_channels);
  expect_f32_sums(call);
  Work work;
  work.threads = context.threads;
  work.channels = operand["x"].shape[-1];
  work.rows = operand["x"].shape.elements() / work.channels;
  return work;
}

}  // namespace

Plan plan_batch_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  auto work = channel_work<BatchForward>(call, {call, tensors}, context);
  work.relu = call.kind == batch_norm_relu_forward_kind;
  work.residual = call.attributes.has("r");
  const BatchNorm& norm = work.relu ? call.attributes.as<BatchNormRelu>().norm : call.attributes.as<BatchNorm>();
  work.epsilon = static_cast<float>(norm.epsilon);
  work.momentum = static_cast<float>(norm.momentum);
  return own_plan(call, work,
                  {{"x", to<&BatchForward::x>},
                   {"gamma", to<&BatchForward::gamma>},
                   {"beta", to<&BatchForward::beta>},
                   {"r?", to<&BatchForward::r>},
                   {"y", to<&BatchForward::y>},
                   {"mean", to<&BatchForward::mean>},
                   {"rstd", to<&BatchForward::rstd>},
                   {"running_mean'", to<&BatchForward::running_mean>},
                   {"running_var'", to<&BatchForward::running_var>},
                   {workspace_operand, to<&BatchForward::workspace>}},
                  work.workspace_bytes());
}

Plan plan_batch_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  auto work = channel_work<BatchBackward>(call, {call, tensors}, context);
  if (call.kind == batch_norm_relu_backward_kind) {
    const auto& with = call.attributes.as<BatchNormReluBackward>();
    work.slope = with.dy2 ? Slope::summed : with.dr ? Slope::stored : Slope::selected;
  }
  return own_plan(call, work,
                  {{"dy", to<&BatchBackward::dy>},
                   {"x", to<&BatchBackward::x>},
                   {"y?", to<&BatchBackward::y>},
                   {"dy2?", to<&BatchBackward::dy2>},
                   {"dr?", to<&BatchBackward::dr>},
                   {"gamma", to<&BatchBackward::gamma>},
                   {"mean", to<&BatchBackward::mean>},
                   {"rstd", to<&BatchBackward::rstd>},
                   {"dx", to<&BatchBackward::dx>},
                   {"dgamma", to<&BatchBackward::dgamma>},
                   {"dbeta", to<&BatchBackward::dbeta>},
                   {workspace_operand, to<&BatchBackward::workspace>}},
                  work.workspace_bytes());
}

}  // namespace gpubench::cpu

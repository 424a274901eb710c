// Batch normalization: channel sums, then one pass over the data. A thread computes the f32 moments of its rows in the
// workspace, four rows at a time (Chan, Golub, LeVeque 1983), reading x once. The threads' moments are merged in order.
#include "reference/ops/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/batch_norm.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

#ifndef GPUBENCH_BATCH_NORM_PASSES
#define GPUBENCH_BATCH_NORM_PASSES
namespace gpubench::cpu {

/// Weights for merging moments of `group` rows into those (mean, m2: sum of squared deviations) of `before` rows.
struct MergeWeights {
  float mean, m2;
  MergeWeights(std::int64_t before, std::int64_t group)
      : mean(static_cast<float>(group) / static_cast<float>(before + group)), m2(static_cast<float>(before) * mean) {}
};

/// Source of dy in the backward passes: dy, or with a ReLU dr, which may be a sum and may be stored.
enum class Slope { given, selected, stored, summed };

/// Pointers into a row; null if the slope does not need them.
template <class T>
struct SlopeRow {
  const T *dy = nullptr, *y = nullptr, *dy2 = nullptr, *x = nullptr;
  T* dr = nullptr;
};

template <class T>
struct BatchNormPasses {
  /// Merge the moments of 4 rows, or of one, of `channels` elements into mean and m2.
  void (*add_four_rows)(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2);
  void (*add_row)(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2);
  void (*merge)(const float* of_group, const float* m2_of_group, MergeWeights weights, std::int64_t count, float* mean,
                float* m2);
  /// y = (x - mean) scale + beta, + r unless null; clamped at 0 if `relu`.
  void (*normalize)(const T* x, const float* mean, const float* scale, const float* beta, const T* r, bool relu,
                    std::int64_t count, T* y);
  /// plain += slope and weighted += slope (x - mean), of one row or, unless `next` is null, two.
  void (*add_slopes)(Slope slope, const SlopeRow<T>& row, const SlopeRow<T>* next, const float* mean,
                     std::int64_t count, float* plain, float* weighted);
  /// dx = factor ((slope - plain) - (x - mean) weighted); the slope is selected by y unless null.
  void (*project)(const T* slopes, const T* y, const T* x, const float* mean, const float* factor, const float* plain,
                  const float* weighted, std::int64_t count, T* dx);
};

}  // namespace gpubench::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

HWY_INLINE V square(V x) { return hn::Mul(x, x); }

template <class T>
void add_four_rows(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2) {
  each_vector(channels, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V a = lanes.from(x + i), b = lanes.from(x + i + channels);
    const V c = lanes.from(x + i + 2 * channels), d = lanes.from(x + i + 3 * channels);
    const V of_group = hn::Mul(hn::Add(hn::Add(a, b), hn::Add(c, d)), all(0.25F));
    const V left = hn::MulAdd(hn::Sub(a, of_group), hn::Sub(a, of_group), square(hn::Sub(b, of_group)));
    const V right = hn::MulAdd(hn::Sub(c, of_group), hn::Sub(c, of_group), square(hn::Sub(d, of_group)));
    const V before = lanes.from(mean + i), delta = hn::Sub(of_group, before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    const V added = hn::MulAdd(square(delta), all(weights.m2), hn::Add(left, right));
    lanes.to(hn::Add(lanes.from(m2 + i), added), m2 + i);
  });
}

template <class T>
void add_row(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2) {
  each_vector(channels, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V before = lanes.from(mean + i), delta = hn::Sub(lanes.from(x + i), before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    lanes.to(hn::MulAdd(square(delta), all(weights.m2), lanes.from(m2 + i)), m2 + i);
  });
}

void merge(const float* of_group, const float* m2_of_group, MergeWeights weights, std::int64_t count, float* mean,
           float* m2) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V before = lanes.from(mean + i), delta = hn::Sub(lanes.from(of_group + i), before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    const V added = hn::MulAdd(square(delta), all(weights.m2), lanes.from(m2_of_group + i));
    lanes.to(hn::Add(lanes.from(m2 + i), added), m2 + i);
  });
}

template <class T>
void normalize(const T* x, const float* mean, const float* scale, const float* beta, const T* r, bool relu,
               std::int64_t count, T* y) {
  const auto normalized = [](V of, V m, V factor, V shift)
                              HWY_ATTR { return hn::MulAdd(hn::Sub(of, m), factor, shift); };
  const auto cut = [](V of) HWY_ATTR { return hn::IfThenZeroElse(of < all(0.0F), of); };  // NaN stays
  if (!relu) return map(y, count, normalized, x, mean, scale, beta);
  if (r == nullptr) {
    const auto selected = [=](V of, V m, V factor, V shift) HWY_ATTR { return cut(normalized(of, m, factor, shift)); };
    return map(y, count, selected, x, mean, scale, beta);
  }
  const auto added = [=](V of, V m, V factor, V shift, V residual)
                         HWY_ATTR { return cut(hn::Add(normalized(of, m, factor, shift), residual)); };
  map(y, count, added, x, mean, scale, beta, r);
}

template <Slope of, class T, class L>
HWY_INLINE V slope_at(const L& lanes, const SlopeRow<T>& row, std::int64_t i) {
  V slope = lanes.from(row.dy + i);
  if constexpr (of == Slope::summed) slope = hn::Add(slope, lanes.from(row.dy2 + i));
  if constexpr (of != Slope::given) slope = hn::IfThenZeroElse(lanes.from(row.y + i) <= all(0.0F), slope);
  if constexpr (of == Slope::stored || of == Slope::summed) lanes.to(slope, row.dr + i);
  return slope;
}

template <Slope of, class T>
HWY_INLINE void add_slopes_of(const SlopeRow<T> row, const SlopeRow<T>* next, const float* mean, std::int64_t count,
                              float* plain, float* weighted) {
  if (next == nullptr) {
    each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
      const V slope = slope_at<of>(lanes, row, i), deviation = hn::Sub(lanes.from(row.x + i), lanes.from(mean + i));
      lanes.to(hn::Add(lanes.from(plain + i), slope), plain + i);
      lanes.to(hn::MulAdd(slope, deviation, lanes.from(weighted + i)), weighted + i);
    });
    return;
  }
  each_vector(count, [=, second = *next](auto lanes, std::int64_t i) HWY_ATTR {
    const V a = slope_at<of>(lanes, row, i), b = slope_at<of>(lanes, second, i), m = lanes.from(mean + i);
    lanes.to(hn::Add(lanes.from(plain + i), hn::Add(a, b)), plain + i);
    const V product = hn::Mul(b, hn::Sub(lanes.from(second.x + i), m));
    const V products = hn::MulAdd(a, hn::Sub(lanes.from(row.x + i), m), product);
    lanes.to(hn::Add(lanes.from(weighted + i), products), weighted + i);
  });
}

template <class T>
void add_slopes(Slope slope, const SlopeRow<T>& row, const SlopeRow<T>* next, const float* mean, std::int64_t count,
                float* plain, float* weighted) {
  switch (slope) {
    case Slope::given: return add_slopes_of<Slope::given>(row, next, mean, count, plain, weighted);
    case Slope::selected: return add_slopes_of<Slope::selected>(row, next, mean, count, plain, weighted);
    case Slope::stored: return add_slopes_of<Slope::stored>(row, next, mean, count, plain, weighted);
    case Slope::summed: return add_slopes_of<Slope::summed>(row, next, mean, count, plain, weighted);
  }
}

template <class T>
void project(const T* slopes, const T* y, const T* x, const float* mean, const float* factor, const float* plain,
             const float* weighted, std::int64_t count, T* dx) {
  const auto projected = [](V slope, V of, V m, V scale, V p, V w)
                             HWY_ATTR { return hn::Mul(scale, hn::NegMulAdd(hn::Sub(of, m), w, hn::Sub(slope, p))); };
  if (y == nullptr) return map(dx, count, projected, slopes, x, mean, factor, plain, weighted);
  const auto selected = [=](V slope, V selecting, V of, V m, V scale, V p, V w) HWY_ATTR {
    return projected(hn::IfThenZeroElse(selecting <= all(0.0F), slope), of, m, scale, p, w);
  };
  map(dx, count, selected, slopes, y, x, mean, factor, plain, weighted);
}

template <class T>
constexpr BatchNormPasses<T> passes{add_four_rows<T>, add_row<T>, merge, normalize<T>, add_slopes<T>, project<T>};

BatchNormPasses<float> PassesF32() { return passes<float>; }
BatchNormPasses<bf16> PassesBf16() { return passes<bf16>; }

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(PassesF32);
HWY_EXPORT(PassesBf16);

template <class T>
BatchNormPasses<T> batch_norm_passes() {
  if constexpr (std::is_same_v<T, bf16>) return HWY_DYNAMIC_DISPATCH(PassesBf16)();
  if constexpr (std::is_same_v<T, float>) return HWY_DYNAMIC_DISPATCH(PassesF32)();
}

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

/// A result block: in place, or in a buffer if it is streamed.
template <class T>
class StoredBlock {
 public:
  T* place(const DataRows& to, std::int64_t element) { return to.streaming ? values_.data() : to.at<T>(element); }
  void commit(const DataRows& to, std::int64_t element, std::int64_t count) const {
    if (!to.streaming) return;
    stream_store(reinterpret_cast<std::byte*>(to.at<T>(element)), reinterpret_cast<const std::byte*>(values_.data()),
                 static_cast<std::size_t>(count) * sizeof(T));
  }

 private:
  alignas(64) std::array<T, block_elements> values_;
};

/// Shared by forward and backward: two sums per channel and part of the rows; two vectors computed from them; a pass
/// over all rows.
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
  /// Vectors that the last pass reads.
  [[nodiscard]] float* made(int which) const { return vector(parts(), which); }
  [[nodiscard]] std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(2 * (parts() + 1) * channels) * sizeof(float);
  }

  template <class Sum, class Combine>
  void take_sums(const Sum& sum, const Combine& combine) const {
    parallel_parts(threads, rows, row_grain(channels), [&](std::int64_t index, const Chunk& of) {
      std::fill_n(vector(index, 0), 2 * channels, 0.0F);
      sum(of, vector(index, 0), vector(index, 1));
      stream_fence();
    });
    parallel_chunks(threads, channels, element_grain, combine);
  }
  template <class Write>
  void write_rows(const Write& write) const {
    parallel_chunks(threads, rows, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      write(Chunk{begin, end});
      stream_fence();
    });
  }

  template <class Make>
  void each_block(const Chunk& of, const Make& make) const {
    for (std::int64_t row = of.begin; row < of.end; ++row) {
      in_blocks(channels, block_elements,
                [&](std::int64_t c, std::int64_t count) { make(row * channels + c, c, count); });
    }
  }
};

struct BatchForward : ChannelWork {
  float epsilon = 0.0F, momentum = 0.0F;
  bool relu = false, residual = false;
  DataRows x, r, y;
  const float *gamma = nullptr, *beta = nullptr;
  float *mean = nullptr, *rstd = nullptr, *running_mean = nullptr, *running_var = nullptr;

  void operator()() const {
    take_sums(
        [this](const Chunk& of, float* means, float* m2s) {
          x.is_bf16 ? add_moments<bf16>(of, means, m2s) : add_moments<float>(of, means, m2s);
        },
        [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
    write_rows([this](const Chunk& of) { x.is_bf16 ? normalize<bf16>(of) : normalize<float>(of); });
  }

  template <class T>
  void add_moments(const Chunk& of, float* means, float* m2s) const {
    const BatchNormPasses<T> passes = batch_norm_passes<T>();
    constexpr std::int64_t group = 4;
    std::int64_t row = of.begin;
    for (; row + group <= of.end; row += group)
      passes.add_four_rows(x.at<T>(row * channels), channels, MergeWeights(row - of.begin, group), means, m2s);
    for (; row < of.end; ++row)
      passes.add_row(x.at<T>(row * channels), channels, MergeWeights(row - of.begin, 1), means, m2s);
  }

  template <class T>
  void normalize(const Chunk& of) const {
    const BatchNormPasses<T> passes = batch_norm_passes<T>();
    StoredBlock<T> block;
    each_block(of, [&](std::int64_t first, std::int64_t channel, std::int64_t count) {
      passes.normalize(x.at<T>(first), mean + channel, made(0) + channel, beta + channel,
                       residual ? r.at<T>(first) : nullptr, relu, count, block.place(y, first));
      block.commit(y, first, count);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t index = 1; index < parts(); ++index) {
      batch_norm_passes<float>().merge(vector(index, 0) + begin, vector(index, 1) + begin,
                                       MergeWeights(part(index).begin, part(index).end - part(index).begin),
                                       end - begin, vector(0, 0) + begin, vector(0, 1) + begin);
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

struct BatchBackward : ChannelWork {
  Slope slope = Slope::given;
  DataRows dy, x, y, dy2, dx, dr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;

  void operator()() const {
    take_sums(
        [this](const Chunk& of, float* plain, float* weighted) {
          x.is_bf16 ? add_rows<bf16>(of, plain, weighted) : add_rows<float>(of, plain, weighted);
        },
        [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
    write_rows([this](const Chunk& of) { x.is_bf16 ? project<bf16>(of) : project<float>(of); });
  }

  [[nodiscard]] bool stores() const { return slope == Slope::stored || slope == Slope::summed; }

  /// For a row and, if `both`, the next.
  template <class T>
  void add_slopes(std::int64_t row, bool both, float* plain, float* weighted) const {
    StoredBlock<T> block, next_block;
    in_blocks(channels, block_elements, [&](std::int64_t c, std::int64_t count) {
      const std::int64_t at = row * channels + c, next_at = at + channels;
      const auto slopes_at = [&](std::int64_t element, StoredBlock<T>& stored) {
        SlopeRow<T> of{.dy = dy.at<T>(element), .x = x.at<T>(element)};
        if (slope != Slope::given) of.y = y.at<T>(element);
        if (slope == Slope::summed) of.dy2 = dy2.at<T>(element);
        if (stores()) of.dr = stored.place(dr, element);
        return of;
      };
      const SlopeRow<T> first = slopes_at(at, block), next = both ? slopes_at(next_at, next_block) : SlopeRow<T>();
      batch_norm_passes<T>().add_slopes(slope, first, both ? &next : nullptr, mean + c, count, plain + c, weighted + c);
      if (stores()) block.commit(dr, at, count);
      if (stores() && both) next_block.commit(dr, next_at, count);
    });
  }

  template <class T>
  void add_rows(const Chunk& range, float* plain, float* weighted) const {
    std::int64_t row = range.begin;
    for (; row + 1 < range.end; row += 2) add_slopes<T>(row, true, plain, weighted);
    if (row < range.end) add_slopes<T>(row, false, plain, weighted);
  }

  template <class T>
  void project(const Chunk& range) const {
    const BatchNormPasses<T> passes = batch_norm_passes<T>();
    StoredBlock<T> block;
    each_block(range, [&](std::int64_t first, std::int64_t c, std::int64_t count) {
      passes.project(stores() ? dr.at<T>(first) : dy.at<T>(first), slope == Slope::selected ? y.at<T>(first) : nullptr,
                     x.at<T>(first), mean + c, made(0) + c, made(1) + c, vector(0, 0) + c, count,
                     block.place(dx, first));
      block.commit(dx, first, count);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    const auto n = static_cast<float>(rows);
    float *plain = vector(0, 0), *weighted = vector(0, 1);
    for (std::int64_t index = 1; index < parts(); ++index) {
      runs().add(vector(index, 0) + begin, end - begin, plain + begin);
      runs().add(vector(index, 1) + begin, end - begin, weighted + begin);
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

// Row-major; channel tensors f32.
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

}  // namespace

Ops batch_norm_ops() {
  return {{batch_norm_backward_kind, plan_batch_norm_backward},
          {batch_norm_forward_kind, plan_batch_norm_forward},
          {batch_norm_relu_backward_kind, plan_batch_norm_backward, Gain::measured},
          {batch_norm_relu_forward_kind, plan_batch_norm_forward, Gain::measured}};
}

}  // namespace gpubench::cpu
#endif

// Batch normalization: sums down channels, then one pass over the data. Each thread takes the moments of its rows in
// f32 in the workspace, four rows at a time (Chan, Golub, LeVeque 1983), so that x is read once for them; the threads'
// are merged in order.
#include "reference/ops/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/cpu/batch_norm_passes.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

/// Of f32 or bf16.
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
  T* place(const DataRows& to, std::int64_t element) { return to.streaming ? values_.data() : to.at<T>(element); }
  void commit(const DataRows& to, std::int64_t element, std::int64_t count) const {
    if (!to.streaming) return;
    stream_store(reinterpret_cast<std::byte*>(to.at<T>(element)), reinterpret_cast<const std::byte*>(values_.data()),
                 static_cast<std::size_t>(count) * sizeof(T));
  }

 private:
  alignas(64) std::array<T, block_elements> values_;
};

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
  void each_block(const Chunk& of, const Make& make) const {
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

void BatchForward::operator()() const {
  take_sums([this](const Chunk& of, float* means,
                   float* m2s) { x.is_bf16 ? add_moments<bf16>(of, means, m2s) : add_moments<float>(of, means, m2s); },
            [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  write_rows([this](const Chunk& of) { x.is_bf16 ? normalize<bf16>(of) : normalize<float>(of); });
}

struct BatchBackward : ChannelWork {
  Slope slope = Slope::given;
  DataRows dy, x, y, dy2, dx, dr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;

  void operator()() const;

  [[nodiscard]] bool stores() const { return slope == Slope::stored || slope == Slope::summed; }

  /// Of a row, and of the next if it is `both`.
  template <class T>
  void add_slopes(std::int64_t row, bool both, float* plain, float* weighted) const {
    StoredBlock<T> block, next_block;
    for (std::int64_t c = 0; c < channels; c += block_elements) {
      const std::int64_t count = std::min(block_elements, channels - c);
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
    }
  }

  template <class T>
  void add_rows(const Chunk& range, float* plain, float* weighted) const {
    std::int64_t row = range.begin;
    for (; row + 1 < range.end; row += 2) add_slopes<T>(row, true, plain, weighted);
    if (row < range.end) add_slopes<T>(row, false, plain, weighted);
  }

  /// What was stored is read.
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

void BatchBackward::operator()() const {
  take_sums(
      [this](const Chunk& of, float* plain, float* weighted) {
        x.is_bf16 ? add_rows<bf16>(of, plain, weighted) : add_rows<float>(of, plain, weighted);
      },
      [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  write_rows([this](const Chunk& of) { x.is_bf16 ? project<bf16>(of) : project<float>(of); });
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

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

constexpr std::int64_t moment_rows = 4;

/// Merges moments of `group` rows with those of the `before` rows that m2, the sum of squared deviations, and mean are
/// of.
struct MergeWeights {
  float mean, m2;
  MergeWeights(std::int64_t before, std::int64_t group)
      : mean(static_cast<float>(group) / static_cast<float>(before + group)), m2(static_cast<float>(before) * mean) {}
};

GPUBENCH_VECTOR_CLONES
void merge_four_rows(const std::array<const float*, moment_rows>& rows, MergeWeights weights, std::int64_t count,
                     float* mean, float* m2) {
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float of_group = ((a[i] + b[i]) + (c[i] + d[i])) * 0.25F;
    const float da = a[i] - of_group, db = b[i] - of_group, dc = c[i] - of_group, dd = d[i] - of_group;
    const float delta = of_group - mean[i];
    mean[i] += delta * weights.mean;
    m2[i] += ((da * da + db * db) + (dc * dc + dd * dd)) + delta * delta * weights.m2;
  }
}

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

GPUBENCH_VECTOR_CLONES
void normalize_row(const float* x, const float* mean, const float* scale, const float* beta, std::int64_t count,
                   float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean[i]) * scale[i] + beta[i];
}

/// r: null, or a row that is added.
GPUBENCH_VECTOR_CLONES
void normalize_relu_row(const float* x, const float* mean, const float* scale, const float* beta, const float* r,
                        std::int64_t count, float* y) {
  const auto relu = [](float value) { return value < 0.0F ? 0.0F : value; };  // a NaN spreads
  if (r == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = relu((x[i] - mean[i]) * scale[i] + beta[i]);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = relu((x[i] - mean[i]) * scale[i] + beta[i] + r[i]);
  }
}

/// dr = dy, to which dy2 is added where it is not null, or zero where y is not positive.
GPUBENCH_VECTOR_CLONES
void select_row(const float* y, const float* dy, const float* dy2, std::int64_t count, float* dr) {
  if (dy2 == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) dr[i] = y[i] <= 0.0F ? 0.0F : dy[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) dr[i] = y[i] <= 0.0F ? 0.0F : dy[i] + dy2[i];
  }
}

using RowPair = std::array<const float*, 2>;  // of dy, and of x

GPUBENCH_VECTOR_CLONES
void add_two_rows(const RowPair& first, const RowPair& second, const float* mean, std::int64_t count, float* plain,
                  float* weighted) {
  const float *dy = first[0], *x = first[1], *next_dy = second[0], *next_x = second[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    plain[i] += dy[i] + next_dy[i];
    weighted[i] += dy[i] * (x[i] - mean[i]) + next_dy[i] * (next_x[i] - mean[i]);
  }
}

GPUBENCH_VECTOR_CLONES
void add_one_row(const RowPair& row, const float* mean, std::int64_t count, float* plain, float* weighted) {
  const float *dy = row[0], *x = row[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    plain[i] += dy[i];
    weighted[i] += dy[i] * (x[i] - mean[i]);
  }
}

/// What the rows of dx are made with, by channel.
struct ChannelProjection {
  const float *mean, *factor, *of_plain, *of_weighted;
};

GPUBENCH_VECTOR_CLONES
void project_row(const RowPair& row, const ChannelProjection& by, std::int64_t first, std::int64_t count, float* dx) {
  const float *dy = row[0], *x = row[1];
  const float *mean = by.mean + first, *factor = by.factor + first, *of_plain = by.of_plain + first,
              *of_weighted = by.of_weighted + first;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    dx[i] = factor[i] * ((dy[i] - of_plain[i]) - (x[i] - mean[i]) * of_weighted[i]);
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
    });
    parallel_chunks(threads, channels, element_grain, combine);
  }

  /// Calls make(first element, first channel, count, block) for every block of `to`.
  template <class Make>
  void write_rows(const Sink& to, const Make& make) const {
    parallel_chunks(threads, rows, row_grain(channels), [&](std::int64_t begin, std::int64_t end) {
      BlockBuffer result;
      for (std::int64_t row = begin; row < end; ++row) {
        for (std::int64_t c = 0; c < channels; c += block_elements) {
          const std::int64_t count = std::min(block_elements, channels - c);
          float* block = to.place(row * channels + c, result);
          make(row * channels + c, c, count, block);
          to.commit(row * channels + c, count, block);
        }
      }
      stream_fence();
    });
  }
};

struct BatchForward : ChannelWork {
  float epsilon = 0.0F, momentum = 0.0F;
  bool relu = false, residual = false;
  Source x, r;
  Sink y;
  const float *gamma = nullptr, *beta = nullptr;
  float *mean = nullptr, *rstd = nullptr, *running_mean = nullptr, *running_var = nullptr;

  void operator()() const {
    take_sums([this](const Chunk& of, float* means, float* m2s) { take_moments(of, means, m2s); },
              [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
    write_rows(y, [this](std::int64_t first, std::int64_t c, std::int64_t count, float* block) {
      BlockBuffer buffer, r_buffer;
      const float* from = x.read(first, count, buffer);
      if (!relu) return normalize_row(from, mean + c, made(0) + c, beta + c, count, block);
      const float* added = residual ? r.read(first, count, r_buffer) : nullptr;
      normalize_relu_row(from, mean + c, made(0) + c, beta + c, added, count, block);
    });
  }

  void take_moments(const Chunk& of, float* means, float* m2s) const {
    std::array<BlockBuffer, moment_rows> buffers;
    std::array<const float*, moment_rows> blocks{};
    std::int64_t row = of.begin;
    for (std::int64_t group = moment_rows; row < of.end; row += group) {
      if (of.end - row < moment_rows) group = 1;
      const MergeWeights weights(row - of.begin, group);
      for (std::int64_t c = 0; c < channels; c += block_elements) {
        const std::int64_t count = std::min(block_elements, channels - c);
        for (std::int64_t k = 0; k < group; ++k) {
          const auto at = static_cast<std::size_t>(k);
          blocks[at] = x.read((row + k) * channels + c, count, buffers[at]);
        }
        if (group == moment_rows) {
          merge_four_rows(blocks, weights, count, means + c, m2s + c);
        } else {
          merge_moments(blocks[0], zeros.data(), weights, count, means + c, m2s + c);
        }
      }
    }
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

  static constexpr std::array<float, block_elements> zeros{};
};

/// With a ReLU, dr takes dy's place. Where it is stored, the first pass writes it and the second reads it.
struct BatchBackward : ChannelWork {
  BatchNormReluBackward with;
  bool relu = false;
  Source dy, x, y, dy2, stored_dr;
  Sink dx, dr;
  const float *gamma = nullptr, *mean = nullptr, *rstd = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;

  void operator()() const {
    take_sums([this](const Chunk& of, float* plain, float* weighted) { add_rows(of, plain, weighted); },
              [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
    // The sums of the first part are no longer wanted.
    const ChannelProjection by{mean, made(0), made(1), vector(0, 0)};
    write_rows(dx, [&](std::int64_t first, std::int64_t c, std::int64_t count, float* block) {
      std::array<BlockBuffer, 2> buffers;
      const float* slope = with.dr ? stored_dr.read(first, count, buffers[0]) : gradient(first, count, buffers[0]);
      project_row({slope, x.read(first, count, buffers[1])}, by, c, count, block);
    });
  }

  /// dy, or dr, which is stored if it is to be.
  const float* gradient(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const {
    if (!relu) return dy.read(first, count, buffer);
    std::array<BlockBuffer, 3> buffers;
    float* made = with.dr ? dr.place(first, buffer) : buffer.values.data();
    select_row(y.read(first, count, buffers[0]), dy.read(first, count, buffers[1]),
               with.dy2 ? dy2.read(first, count, buffers[2]) : nullptr, count, made);
    if (with.dr) dr.commit(first, count, made);
    return made;
  }

  void add_rows(const Chunk& of, float* plain, float* weighted) const {
    std::array<BlockBuffer, 4> buffers;
    for (std::int64_t row = of.begin; row < of.end; row += 2) {
      for (std::int64_t c = 0; c < channels; c += block_elements) {
        const std::int64_t count = std::min(block_elements, channels - c);
        const auto pair = [&](std::int64_t at, std::size_t first_buffer) {
          return RowPair{gradient(at * channels + c, count, buffers[first_buffer]),
                         x.read(at * channels + c, count, buffers[first_buffer + 1])};
        };
        if (row + 1 < of.end) {
          add_two_rows(pair(row, 0), pair(row + 1, 2), mean + c, count, plain + c, weighted + c);
        } else {
          add_one_row(pair(row, 0), mean + c, count, plain + c, weighted + c);
        }
      }
    }
    stream_fence();
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
  work.relu = call.kind == batch_norm_relu_backward_kind;
  if (work.relu) work.with = call.attributes.as<BatchNormReluBackward>();
  return own_plan(call, work,
                  {{"dy", to<&BatchBackward::dy>},
                   {"x", to<&BatchBackward::x>},
                   {"y?", to<&BatchBackward::y>},
                   {"dy2?", to<&BatchBackward::dy2>},
                   {"dr?", to<&BatchBackward::dr>},
                   {"dr?", to<&BatchBackward::stored_dr>},
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

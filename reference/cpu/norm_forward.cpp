// Layer norm in three passes over a row in the L1 cache: mean, variance about the mean (E[x^2] - mean^2 cancels),
// result. RMS norm has no mean and no beta. Sums are f32 by vector lanes within blocks, f64 over blocks.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/norm.h"

namespace gpubench::cpu {
namespace {

/// Replaces a missing beta.
constexpr std::array<float, direct_columns> zeros{};

/// Last step of both forwards: statistics of a row, and y.
struct NormRows {
  int threads = 1;
  double epsilon = 0.0;
  RowView y_view;
  Source gamma, beta;
  Sink y;
  float* mean = nullptr;  ///< null: no mean
  float* rstd = nullptr;
  bool has_beta = true;
  std::optional<DType> rounded{};  ///< rounding type of x rstd; null: unrounded

  /// `squares`: sum of (x - mean)^2; `read(first column, count)`: a block of x, at most block_elements if `staged`.
  template <class Read>
  void store_row(std::int64_t row, float row_mean, double squares, bool staged, const Read& read) const {
    const std::int64_t n = y_view.columns;
    const auto row_rstd = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon));
    if (mean != nullptr) mean[row] = row_mean;
    rstd[row] = row_rstd;
    const bool streams = y.streams_f32() && !rounded;
    const bool in_short = rounded || staged || gamma.staged() || beta.staged() || (y.staged() && !streams);
    BlockBuffer y_buffer, gamma_buffer, beta_buffer;
    in_blocks(n, in_short ? block_elements : direct_columns, [&](std::int64_t i, std::int64_t size) {
      const std::int64_t first = row * y_view.stride + i;
      float* block = streams ? y.where(first) : y.place(first, y_buffer);
      if (rounded) {
        runs().scale(read(i, size), row_rstd, size, block);
        round_elements(*rounded, size, block);
        runs().multiply(gamma.gather(i, size, gamma_buffer), size, block);
        return y.commit(first, size, block);
      }
      runs().normalize(read(i, size), gamma.gather(i, size, gamma_buffer),
                       has_beta ? beta.gather(i, size, beta_buffer) : zeros.data(), row_mean, row_rstd, size, block,
                       streams);
      if (!streams) y.commit(first, size, block);
    });
  }
};

struct NormForward : NormRows {
  RowView x_view;
  Source x;

  void operator()() const {
    parallel_rows(threads, x_view.rows, x_view.columns, [this](std::int64_t row) { run_row(row); });
  }

  void run_row(std::int64_t row) const {
    const float row_mean = mean == nullptr ? 0.0F : mean_of(row);
    double squares = 0.0;
    for_blocks(row, [&](const float* block, std::int64_t size, const float* ahead) {
      const float* second_half = ahead == nullptr ? nullptr : ahead + size / 2;
      squares += static_cast<double>(runs().squared_deviations(block, row_mean, size, second_half));
    });
    BlockBuffer buffer;
    store_row(row, row_mean, squares, x.staged(), [&](std::int64_t i, std::int64_t size) {
      if (x.staged() && row + 1 < x_view.rows) x.prefetch((row + 1) * x_view.stride + i, size);
      return x.read(row * x_view.stride + i, size, buffer);
    });
  }

  [[nodiscard]] float mean_of(std::int64_t row) const {
    double total = 0.0;
    for_blocks(row, [&](const float* block, std::int64_t size, const float* ahead) {
      total += static_cast<double>(runs().sum(block, size, ahead));
    });
    return static_cast<float>(total / static_cast<double>(x_view.columns));
  }

  // Calls work(block, size, ahead) for the blocks of a row of x. `ahead`: the same block two rows later, or null if
  // staged. The prefetch keeps memory busy during the passes in cache; one row ahead would be too late for the first
  // lines.
  template <class Work>
  void for_blocks(std::int64_t row, const Work& work) const {
    const std::int64_t distance = std::min<std::int64_t>(2, x_view.rows - 1 - row) * x_view.stride;
    BlockBuffer buffer;
    in_blocks(x_view.columns, x.staged() ? block_elements : direct_columns, [&](std::int64_t i, std::int64_t size) {
      const float* block = x.read(row * x_view.stride + i, size, buffer);
      work(block, size, x.staged() ? nullptr : block + distance);
    });
  }
};

// A residual connection followed by the norm. A row's sum is computed once, in a scratch row in the L1 cache; it is
// stored from there (streamed if large) and normalized. Separate ops would read it from memory again.
struct ResidualForward : NormRows {
  std::int64_t rows = 0;
  std::int64_t n = 0;
  Tensor x, r, sum;
  float* scratch = nullptr;  // a row per thread
  bool is_bf16 = false;
  bool streaming = false;

  void operator()() const {
    parallel_rows(threads, rows, n,
                  [this](std::int64_t row) { run_row(row, scratch + omp_get_thread_num() * scratch_row(n)); });
  }

  void run_row(std::int64_t row, float* wide) const {
    const double total = is_bf16 ? add_row_bf16(row, wide) : add_row(row, wide);
    const auto row_mean = static_cast<float>(total / static_cast<double>(n));
    const float* ahead = elements_of<float>(r) + row_ahead(row) * n;
    double squares = 0.0;
    in_blocks(n, direct_columns, [&](std::int64_t i, std::int64_t size) {
      const float* second_half = is_bf16 ? nullptr : ahead + i + size / 2;
      squares += static_cast<double>(runs().squared_deviations(wide + i, row_mean, size, second_half));
    });
    store_row(row, row_mean, squares, false, [&](std::int64_t i, std::int64_t size) {
      if (is_bf16 && row + 1 < rows) {
        Source(x).prefetch((row + 1) * n + i, size);
        Source(r).prefetch((row + 1) * n + i, size);
      }
      return wide + i;
    });
  }

  // The row to prefetch; the next one would be too late for its first lines.
  [[nodiscard]] std::int64_t row_ahead(std::int64_t row) const { return std::min(row + 2, rows - 1); }

  double add_row(std::int64_t row, float* wide) const {
    const float* a = elements_of<float>(x) + row * n;
    const float* b = elements_of<float>(r) + row * n;
    float* to = elements_of<float>(sum) + row * n;
    const std::int64_t ahead = (row_ahead(row) - row) * n;
    double total = 0.0;
    in_blocks(n, direct_columns, [&](std::int64_t i, std::int64_t size) {
      total += static_cast<double>(
          runs().add_rows(a + i, b + i, size, wide + i, streaming ? to + i : nullptr, a + ahead + i, b + ahead + i));
    });
    if (!streaming) std::copy_n(wide, n, to);
    return total;
  }

  double add_row_bf16(std::int64_t row, float* wide) const {
    const bf16* a = elements_of<bf16>(x) + row * n;
    const bf16* b = elements_of<bf16>(r) + row * n;
    bf16* to = elements_of<bf16>(sum) + row * n;
    alignas(64) std::array<bf16, direct_columns> narrowed;
    double total = 0.0;
    in_blocks(n, direct_columns, [&](std::int64_t i, std::int64_t size) {
      runs().add_rows_bf16(a + i, b + i, size, streaming ? narrowed.data() : to + i, wide + i);
      if (streaming) {
        stream_store(reinterpret_cast<std::byte*>(to + i), reinterpret_cast<const std::byte*>(narrowed.data()),
                     static_cast<std::size_t>(size) * sizeof(bf16));
      }
      total += static_cast<double>(runs().sum(wide + i, size, nullptr));
    });
    return total;
  }
};

// Statistics in f32.
Plan plan_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x", "y", "gamma", "beta"});
  expect_row_major(call, operand, {"gamma", "beta", "mean", "rstd"});
  expect_type(call, operand, {"mean", "rstd"}, DType::f32);
  NormForward work;
  work.threads = context.threads;
  work.epsilon = row_norm_of(call).norm.epsilon;
  if (row_norm_of(call).rounds_before_gamma) work.rounded = context.stored_type(operand["x"]);
  work.x_view = rows_of(call, operand["x"]);
  work.y_view = rows_of(call, operand["y"]);
  work.has_beta = operand.find("beta") != nullptr;
  return own_plan(call, work,
                  {{"x", to<&NormForward::x>},
                   {"gamma", to<&NormForward::gamma>},
                   {"beta?", to<&NormForward::beta>},
                   {"y", to<&NormForward::y>},
                   {"mean?", to<&NormForward::mean>},
                   {"rstd", to<&NormForward::rstd>}});
}

// x, r, sum and y of one type, row-major.
Plan plan_residual_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  expect_f32_or_bf16(call, operand, {"x", "gamma", "beta"});
  expect_type(call, operand, {"r", "sum", "y"}, x.dtype);
  expect_type(call, operand, {"mean", "rstd"}, DType::f32);
  ResidualForward work;
  work.threads = context.threads;
  work.epsilon = call.attributes.as<ResidualNorm>().epsilon;
  work.y_view = rows_of(call, operand["y"]);
  work.n = x.shape[-1];
  work.rows = x.shape.elements() / work.n;
  work.is_bf16 = x.dtype == DType::bf16;
  work.streaming = should_stream(x.bytes());
  return own_plan(call, work,
                  {{"x", to<&ResidualForward::x>},
                   {"r", to<&ResidualForward::r>},
                   {"gamma", to<&ResidualForward::gamma>},
                   {"beta", to<&ResidualForward::beta>},
                   {"sum", to<&ResidualForward::sum>},
                   {"y", to<&ResidualForward::y>},
                   {"mean", to<&ResidualForward::mean>},
                   {"rstd", to<&ResidualForward::rstd>},
                   {workspace_operand, to<&ResidualForward::scratch>}},
                  static_cast<std::size_t>(scratch_row(work.n) * context.threads) * sizeof(float));
}

}  // namespace

Ops norm_forward_ops() {
  return {{layer_norm_forward_kind, plan_norm_forward},
          {residual_norm_forward_kind, plan_residual_norm_forward, Gain::measured},
          {rms_norm_forward_kind, plan_norm_forward}};
}

}  // namespace gpubench::cpu

// Layer normalization, three passes over a row that stays in the first-level cache: the mean, the variance about that
// mean (never E[x^2] - mean^2, which cancels), the result. Root mean square normalization has no mean and no beta.
// Blocks are summed in f32 by vector lanes, blocks of a row in f64.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/cpu/block_io.h"
#include "reference/cpu/norm_avx512.h"
#include "reference/cpu/norm_passes.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/plans.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/ops/norm.h"

namespace gpubench::cpu {
namespace {

/// In the place of a beta.
constexpr std::array<float, direct_norm_block> zeros{};

struct NormForward {
  int threads = 1;
  double epsilon = 0.0;
  RowView x_view, y_view;
  Source x, gamma, beta;
  Sink y;
  float* mean = nullptr;
  float* rstd = nullptr;
  bool use_avx512 = false;  // x is f32
  bool has_beta = true;

  void operator()() const {
    parallel_chunks(threads, x_view.rows, row_grain(x_view.columns), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run_row(row);
      stream_fence();
    });
  }

  void run_row(std::int64_t row) const {
    const std::int64_t n = x_view.columns;
    const float row_mean = mean == nullptr ? 0.0F : mean_of(row);
    double squares = 0.0;
    for_blocks(row, [&](const float* block, std::int64_t size, const float* ahead) {
      squares += static_cast<double>(use_avx512 ? avx512::squared_deviations(block, row_mean, size, ahead)
                                                : squared_deviation_block(block, row_mean, size));
    });
    const auto row_rstd = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon));
    if (mean != nullptr) mean[row] = row_mean;
    rstd[row] = row_rstd;
    normalize_row(row, row_mean, row_rstd);
  }

  [[nodiscard]] float mean_of(std::int64_t row) const {
    double total = 0.0;
    for_blocks(row, [&](const float* block, std::int64_t size, const float* ahead) {
      total += static_cast<double>(use_avx512 ? avx512::sum(block, size, ahead) : sum_block(block, size));
    });
    return static_cast<float>(total / static_cast<double>(x_view.columns));
  }

  // Calls work(block, size, ahead) for the blocks of a row of x; ahead is the same block two rows on, where there is
  // one, for kernels that prefetch. One row on would be too late for its first lines.
  template <class Work>
  void for_blocks(std::int64_t row, const Work& work) const {
    const std::int64_t step = x.staged() ? block_elements : direct_norm_block;
    const std::int64_t first = row * x_view.stride;
    const std::int64_t distance = std::min<std::int64_t>(2, x_view.rows - 1 - row) * x_view.stride;
    BlockBuffer buffer;
    for (std::int64_t i = 0; i < x_view.columns; i += step) {
      const float* block = x.read(first + i, std::min(step, x_view.columns - i), buffer);
      work(block, std::min(step, x_view.columns - i), block + distance);
    }
  }

  void normalize_row(std::int64_t row, float row_mean, float row_rstd) const {
    const bool staged = x.staged() || gamma.staged() || beta.staged() || y.staged();
    const std::int64_t step = staged ? block_elements : direct_norm_block;
    const bool last_row = row + 1 == x_view.rows;
    BlockBuffer x_buffer;
    BlockBuffer y_buffer;
    BlockBuffer gamma_buffer;
    BlockBuffer beta_buffer;
    if (use_avx512 && has_beta && !gamma.staged() && y.streams_f32()) {
      avx512::stream_normalized(x.read(row * x_view.stride, x_view.columns, x_buffer),
                                gamma.read(0, x_view.columns, gamma_buffer), beta.read(0, x_view.columns, beta_buffer),
                                row_mean, row_rstd, x_view.columns, y.where(row * y_view.stride));
      return;
    }
    for (std::int64_t i = 0; i < x_view.columns; i += step) {
      const std::int64_t size = std::min(step, x_view.columns - i);
      const std::int64_t y_first = row * y_view.stride + i;
      // Memory would be idle while the row is worked on in the cache.
      if (!use_avx512 && !last_row) x.prefetch((row + 1) * x_view.stride + i, size);
      float* block = y.place(y_first, y_buffer);
      normalize_block(x.read(row * x_view.stride + i, size, x_buffer), gamma.read(i, size, gamma_buffer),
                      has_beta ? beta.read(i, size, beta_buffer) : zeros.data(), row_mean, row_rstd, size, block);
      y.commit(y_first, size, block);
    }
  }
};

}  // namespace

Plan plan_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x", "y", "gamma", "beta"});
  expect_row_major(call, operand, {"gamma", "beta", "mean", "rstd"});
  expect_type(call, operand, {"mean", "rstd"}, DType::f32);
  NormForward work;
  work.threads = context.threads;
  work.epsilon = call.attributes.as<Norm>().epsilon;
  work.x_view = rows_of(call, operand["x"]);
  work.y_view = rows_of(call, operand["y"]);
  work.use_avx512 = operand["x"].dtype == DType::f32 && avx512::available();
  work.has_beta = operand.find("beta") != nullptr;
  return own_plan(call, work,
                  {{"x", to<&NormForward::x>},
                   {"gamma", to<&NormForward::gamma>},
                   {"beta?", to<&NormForward::beta>},
                   {"y", to<&NormForward::y>},
                   {"mean?", to<&NormForward::mean>},
                   {"rstd", to<&NormForward::rstd>}});
}

}  // namespace gpubench::cpu

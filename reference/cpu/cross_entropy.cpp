// Softmax cross-entropy: the largest logit of a row, then the sum of exp(logit - largest), blocks in f32 by vector
// lanes and their sums in f64. A row of logits is small enough to come from the second-level cache the second time.
#include "reference/cpu/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_clones.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace {

/// Passes over NaN, which sum_exp_block() then spreads.
GPUBENCH_VECTOR_CLONES
float max_block(const float* x, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

GPUBENCH_VECTOR_CLONES
float sum_exp_block(const float* x, float largest, std::int64_t count) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += vector_exp(x[i] - largest);
  return sum;
}

GPUBENCH_VECTOR_CLONES
void softmax_block(const float* x, float lse, float factor, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = vector_exp(x[i] - lse) * factor;
}

/// Longest block where nothing is staged.
constexpr std::int64_t direct_block = 2048;

struct Forward {
  int threads = 1;
  RowView view;
  Source logits;
  const std::int32_t* labels = nullptr;
  float* loss = nullptr;
  float* lse = nullptr;
  double* row_loss = nullptr;  ///< [rows]

  void operator()() const {
    parallel_chunks(threads, view.rows, row_grain(view.columns), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run_row(row);
    });
    double sum = 0.0;
    for (std::int64_t row = 0; row < view.rows; ++row) sum += row_loss[row];
    *loss = static_cast<float>(sum / static_cast<double>(view.rows));
  }

  void run_row(std::int64_t row) const {
    const std::int64_t first = row * view.stride;
    const std::int64_t step = logits.staged() ? block_elements : direct_block;
    BlockBuffer buffer;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < view.columns; i += step) {
      const std::int64_t size = std::min(step, view.columns - i);
      largest = std::max(largest, max_block(logits.read(first + i, size, buffer), size));
    }
    double sum = 0.0;
    for (std::int64_t i = 0; i < view.columns; i += step) {
      const std::int64_t size = std::min(step, view.columns - i);
      sum += static_cast<double>(sum_exp_block(logits.read(first + i, size, buffer), largest, size));
    }
    const double row_lse = static_cast<double>(largest) + std::log(sum);
    const std::int64_t label = labels[row];
    const bool known = label >= 0 && label < view.columns;
    lse[row] = static_cast<float>(row_lse);
    row_loss[row] =
        known ? row_lse - static_cast<double>(logits.at(first + label)) : std::numeric_limits<double>::quiet_NaN();
  }
};

struct Backward {
  int threads = 1;
  RowView logits_view, dlogits_view;
  Source logits;
  const std::int32_t* labels = nullptr;
  const float* lse = nullptr;
  Sink dlogits;

  void operator()() const {
    parallel_chunks(threads, logits_view.rows, row_grain(logits_view.columns),
                    [this](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) run_row(row);
                      stream_fence();
                    });
  }

  void run_row(std::int64_t row) const {
    const double rows = static_cast<double>(logits_view.rows);
    const std::int64_t from = row * logits_view.stride;
    const std::int64_t to = row * dlogits_view.stride;
    const std::int64_t label = labels[row];
    // Read before the row is overwritten where it lies.
    const bool known = label >= 0 && label < logits_view.columns;
    const double label_p =
        known ? std::exp(static_cast<double>(logits.at(from + label)) - static_cast<double>(lse[row])) : 0.0;
    const std::int64_t step = logits.staged() || dlogits.staged() ? block_elements : direct_block;
    BlockBuffer x_buffer;
    BlockBuffer y_buffer;
    for (std::int64_t i = 0; i < logits_view.columns; i += step) {
      const std::int64_t size = std::min(step, logits_view.columns - i);
      float* block = dlogits.place(to + i, y_buffer);
      softmax_block(logits.read(from + i, size, x_buffer), lse[row], static_cast<float>(1.0 / rows), size, block);
      if (label >= i && label < i + size) block[label - i] = static_cast<float>((label_p - 1.0) / rows);
      dlogits.commit(to + i, size, block);
    }
  }
};

}  // namespace

Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_f32_or_bf16(call, tensors[0]);
  expect_type(call, tensors[1], DType::i32);
  for (const std::size_t i : {1U, 3U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {2U, 3U}) expect_type(call, tensors[i], DType::f32);
  Forward work;
  work.threads = context.threads;
  work.view = rows_of(call, tensors[0]);
  const auto workspace_bytes = static_cast<std::size_t>(work.view.rows) * sizeof(double);
  return plan_of(own_implementation(), workspace_bytes, [work](std::span<const Tensor> bound, Workspace space) {
    Forward result = work;
    result.logits = Source(bound[0]);
    result.labels = elements_of<const std::int32_t>(bound[1]);
    result.loss = elements_of<float>(bound[2]);
    result.lse = elements_of<float>(bound[3]);
    result.row_loss = reinterpret_cast<double*>(space.data);
    return result;
  });
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_f32_or_bf16(call, tensors[0]);
  expect_type(call, tensors[1], DType::i32);
  expect_type(call, tensors[2], DType::f32);
  expect_f32_or_bf16(call, tensors[3]);
  for (const std::size_t i : {1U, 2U}) expect_row_major(call, tensors[i]);
  Backward work;
  work.threads = context.threads;
  work.logits_view = rows_of(call, tensors[0]);
  work.dlogits_view = rows_of(call, tensors[3]);
  const bool streaming = worth_streaming(tensors[3].bytes());
  return plan_of(own_implementation(), 0, [work, streaming](std::span<const Tensor> bound, Workspace) {
    Backward result = work;
    result.logits = Source(bound[0]);
    result.labels = elements_of<const std::int32_t>(bound[1]);
    result.lse = elements_of<const float>(bound[2]);
    result.dlogits = Sink(bound[3], streaming && bound[3].data != bound[0].data);
    return result;
  });
}

}  // namespace gpubench::cpu

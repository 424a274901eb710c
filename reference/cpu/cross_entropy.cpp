// Softmax cross-entropy: the largest logit of a row, then the sum of exp(logit - largest), blocks in f32 by vector
// lanes and their sums in f64. A row of logits is small enough to be in the second-level cache when it is read again.
#include "reference/cpu/kernel.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/softmax.h"

namespace gpubench::cpu {
namespace {

struct LossForward {
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
    store_mean();
  }

  void store_mean() const {
    double sum = 0.0;
    for (std::int64_t row = 0; row < view.rows; ++row) sum += row_loss[row];
    *loss = static_cast<float>(sum / static_cast<double>(view.rows));
  }

  [[nodiscard]] std::int64_t step() const { return logits.staged() ? block_elements : direct_columns; }

  [[nodiscard]] float largest_of(std::int64_t row) const {
    BlockBuffer buffer;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < view.columns; i += step()) {
      const std::int64_t size = std::min(step(), view.columns - i);
      largest = std::max(largest, max_block(logits.read(row * view.stride + i, size, buffer), size));
    }
    return largest;
  }

  void run_row(std::int64_t row) const {
    const float largest = largest_of(row);
    BlockBuffer buffer;
    double sum = 0.0;
    for (std::int64_t i = 0; i < view.columns; i += step()) {
      const std::int64_t size = std::min(step(), view.columns - i);
      sum += static_cast<double>(sum_exp_block(logits.read(row * view.stride + i, size, buffer), largest, size));
    }
    (void)store_row(row, static_cast<double>(largest) + std::log(sum));
  }

  /// Reads the label's logit: to be called before the row is overwritten. False for a label outside the classes.
  bool store_row(std::int64_t row, double row_lse) const {
    const std::int64_t label = labels[row];
    const bool known = label >= 0 && label < view.columns;
    lse[row] = static_cast<float>(row_lse);
    row_loss[row] = known ? row_lse - static_cast<double>(logits.at(row * view.stride + label))
                          : std::numeric_limits<double>::quiet_NaN();
    return known;
  }
};

struct LossBackward {
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
    // Read before the row is overwritten in place.
    const bool known = label >= 0 && label < logits_view.columns;
    const double label_p =
        known ? std::exp(static_cast<double>(logits.at(from + label)) - static_cast<double>(lse[row])) : 0.0;
    const std::int64_t step = logits.staged() || dlogits.staged() ? block_elements : direct_columns;
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

/// Floats of a scratch row: whole cache lines, so that no two threads share one.
std::int64_t scratch_row(std::int64_t classes) { return (classes + 15) / 16 * 16; }

/// Both at once: the exponentials of the sum stay in a scratch row in the second-level cache, and the gradient is these
/// times one factor. The logits are read from memory once, and no exponential is taken twice.
struct LossForwardBackward {
  LossForward forward;
  RowView dlogits_view;
  Sink dlogits;
  float* scratch = nullptr;  // a row for each thread

  void operator()() const {
    const RowView& view = forward.view;
    parallel_chunks(forward.threads, view.rows, row_grain(view.columns), [&](std::int64_t begin, std::int64_t end) {
      float* own = scratch + omp_get_thread_num() * scratch_row(view.columns);
      for (std::int64_t row = begin; row < end; ++row) run_row(row, own);
      stream_fence();
    });
    forward.store_mean();
  }

  void run_row(std::int64_t row, float* e) const {
    const std::int64_t columns = forward.view.columns;
    const std::int64_t from = row * forward.view.stride;
    const float largest = forward.largest_of(row);
    const std::int64_t read_step = forward.logits.staged() ? block_elements : direct_columns;
    BlockBuffer buffer;
    double sum = 0.0;
    for (std::int64_t i = 0; i < columns; i += read_step) {
      const std::int64_t size = std::min(read_step, columns - i);
      sum += static_cast<double>(exp_block(forward.logits.read(from + i, size, buffer), largest, size, e + i));
    }
    const std::int64_t label = forward.labels[row];
    const bool known = forward.store_row(row, static_cast<double>(largest) + std::log(sum));
    const double rows = static_cast<double>(forward.view.rows);
    const double factor = known ? 1.0 / (sum * rows) : std::numeric_limits<double>::quiet_NaN();
    const std::int64_t to = row * dlogits_view.stride;
    const std::int64_t write_step = dlogits.staged() ? block_elements : direct_columns;
    for (std::int64_t i = 0; i < columns; i += write_step) {
      const std::int64_t size = std::min(write_step, columns - i);
      float* block = dlogits.place(to + i, buffer);
      multiply_block(e + i, static_cast<float>(factor), size, block);
      if (label >= i && label < i + size) {
        block[label - i] = static_cast<float>((static_cast<double>(e[label]) / sum - 1.0) / rows);
      }
      dlogits.commit(to + i, size, block);
    }
  }
};

/// The rows of logits. Throws Unsupported for types and layouts that the kernels lack.
RowView checked_logits(const OpCall& call, const Named<TensorSpec>& operand) {
  expect_f32_or_bf16(call, operand, {"logits", "dlogits"});
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_type(call, operand, {"loss", "lse"}, DType::f32);
  expect_row_major(call, operand, {"labels", "lse"});
  return rows_of(call, operand["logits"]);
}

}  // namespace

Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  LossForward work;
  work.threads = context.threads;
  work.view = checked_logits(call, {call, tensors});
  return own_plan(call, work,
                  {{"logits", to<&LossForward::logits>},
                   {"labels", to<&LossForward::labels>},
                   {"loss", to<&LossForward::loss>},
                   {"lse", to<&LossForward::lse>},
                   {workspace_operand, to<&LossForward::row_loss>}},
                  static_cast<std::size_t>(work.view.rows) * sizeof(double));
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  LossForwardBackward work;
  work.forward.threads = context.threads;
  work.forward.view = checked_logits(call, operand);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  const auto loss_bytes = static_cast<std::size_t>((work.forward.view.rows + 7) / 8 * 8) * sizeof(double);
  const auto row_bytes = static_cast<std::size_t>(scratch_row(work.forward.view.columns)) * sizeof(float);
  const std::size_t bytes = loss_bytes + static_cast<std::size_t>(context.threads) * row_bytes;
  const bool streaming = worth_streaming(tensors[4].bytes());
  return plan_of(own_implementation(), bytes, [=](std::span<const Tensor> bound, Workspace space) {
    LossForwardBackward result = work;
    result.forward.logits = Source(bound[0]);
    result.forward.labels = elements_of<const std::int32_t>(bound[1]);
    result.forward.loss = elements_of<float>(bound[2]);
    result.forward.lse = elements_of<float>(bound[3]);
    result.forward.row_loss = reinterpret_cast<double*>(space.data);
    result.scratch = reinterpret_cast<float*>(space.data + loss_bytes);
    result.dlogits = Sink(bound[4], streaming && bound[4].data != bound[0].data);
    return result;
  });
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  LossBackward work;
  work.threads = context.threads;
  work.logits_view = checked_logits(call, operand);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  return own_plan(call, work,
                  {{"logits", to<&LossBackward::logits>},
                   {"labels", to<&LossBackward::labels>},
                   {"lse", to<&LossBackward::lse>},
                   {"dlogits", to<&LossBackward::dlogits>}});
}

}  // namespace gpubench::cpu

// Softmax cross-entropy: the largest logit of a row, then the sum of exp(logit - largest), blocks in f32 by vector
// lanes and their sums in f64. A row of logits is small enough to be in the second-level cache when it is read again.
#include "reference/cpu/kernel.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/cross_entropy.h"

namespace gpubench::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Of how many rows the loss is the mean; `given`: that number, or null.
double counted_rows(const CrossEntropy& terms, const std::int32_t* labels, std::int64_t rows, const float* given) {
  if (given != nullptr) return static_cast<double>(*given);
  if (!terms.ignores) return static_cast<double>(rows);
  return static_cast<double>(
      std::count_if(labels, labels + rows, [&](std::int32_t label) { return terms.counts(label); }));
}

/// The gradient of a row: p slope scale - base, at the label (p slope - target) scale. All 0 in a row that does not
/// count, NaN where the label is outside the classes.
struct RowGradient {
  double slope = 0.0, scale = 0.0, base = 0.0, target = 0.0;

  /// `here`: of how many classes the logits are; `of_mean`: dloss / n.
  RowGradient(const CrossEntropy& terms, std::int64_t label, std::int64_t here, double lse, double of_mean) {
    if (!terms.counts(label)) return;
    const double share = terms.label_smoothing / static_cast<double>(terms.all_classes(here));
    scale = terms.is_class(label, here) ? of_mean : nan;
    slope = terms.z_loss == 0.0 ? 1.0 : 1.0 + 2.0 * terms.z_loss * lse;
    base = share * scale;
    target = 1.0 - terms.label_smoothing + share;
  }
  [[nodiscard]] float at_label(double p) const { return static_cast<float>((p * slope - target) * scale); }
};

void store_mean(double count, std::int64_t rows, const double* row_loss, float* loss) {
  double sum = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) sum += row_loss[row];
  *loss = static_cast<float>(sum / count);
}

/// Of a row that counts.
double row_loss_of(const CrossEntropy& terms, double lse, double score) {
  return terms.z_loss == 0.0 ? lse - score : lse - score + terms.z_loss * lse * lse;
}

/// Of all classes, or of a part of them, which has no loss but scores.
struct LossForward {
  CrossEntropy terms;
  int threads = 1;
  RowView view;
  Source logits;
  const std::int32_t* labels = nullptr;
  float* loss = nullptr;
  float* lse = nullptr;
  float* score = nullptr;        ///< [rows]
  double* row_loss = nullptr;    ///< [rows]
  const float* count = nullptr;  ///< null: of its own rows

  void operator()() const {
    parallel_chunks(threads, view.rows, row_grain(view.columns), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run_row(row);
    });
    if (score == nullptr) store_loss();
  }
  [[nodiscard]] double rows_of_mean() const { return counted_rows(terms, labels, view.rows, count); }
  void store_loss() const { store_mean(rows_of_mean(), view.rows, row_loss, loss); }

  [[nodiscard]] std::int64_t step() const { return logits.staged() ? block_elements : direct_columns; }

  [[nodiscard]] float largest_of(std::int64_t row) const {
    BlockBuffer buffer;
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < view.columns; i += step()) {
      const std::int64_t size = std::min(step(), view.columns - i);
      largest = std::max(largest, runs().largest(logits.read(row * view.stride + i, size, buffer), size));
    }
    return largest;
  }

  /// What label smoothing needs: of a row that was just read. 0 where labels are not smoothed.
  [[nodiscard]] double logit_sum_of(std::int64_t row) const {
    if (terms.label_smoothing == 0.0) return 0.0;
    BlockBuffer buffer;
    double sum = 0.0;
    for (std::int64_t i = 0; i < view.columns; i += step()) {
      const std::int64_t size = std::min(step(), view.columns - i);
      sum += static_cast<double>(runs().sum(logits.read(row * view.stride + i, size, buffer), size, nullptr));
    }
    return sum;
  }

  void run_row(std::int64_t row) const {
    const float largest = largest_of(row);
    BlockBuffer buffer;
    double sum = 0.0;
    for (std::int64_t i = 0; i < view.columns; i += step()) {
      const std::int64_t size = std::min(step(), view.columns - i);
      sum += static_cast<double>(runs().exp(logits.read(row * view.stride + i, size, buffer), largest, size, nullptr));
    }
    store_row(row, static_cast<double>(largest) + std::log(sum));
  }

  /// Reads the row's logits: to be called before they are overwritten.
  void store_row(std::int64_t row, double row_lse) const {
    lse[row] = static_cast<float>(row_lse);
    const double of_row = terms.counts(labels[row]) ? score_of(row) : 0.0;
    if (score != nullptr) {
      score[row] = static_cast<float>(of_row);
    } else {
      row_loss[row] = terms.counts(labels[row]) ? row_loss_of(terms, row_lse, of_row) : 0.0;
    }
  }

  /// What a row's loss is less than its log-sum-exp, by the classes that are here.
  [[nodiscard]] double score_of(std::int64_t row) const {
    if (!terms.is_class(labels[row], view.columns)) return nan;
    const std::int64_t here = labels[row] - terms.first;
    double sum = 0.0;
    if (here >= 0 && here < view.columns)
      sum = (1.0 - terms.label_smoothing) * static_cast<double>(logits.at(row * view.stride + here));
    if (terms.label_smoothing != 0.0)
      sum += terms.label_smoothing / static_cast<double>(terms.all_classes(view.columns)) * logit_sum_of(row);
    return sum;
  }
};

struct LossBackward {
  CrossEntropy terms;
  int threads = 1;
  RowView logits_view, dlogits_view;
  Source logits;
  const std::int32_t* labels = nullptr;
  const float* lse = nullptr;
  const float* dloss = nullptr;  ///< null: 1
  const float* count = nullptr;  ///< null: of its own rows
  Sink dlogits;

  void operator()() const {
    const double of_mean =
        (dloss == nullptr ? 1.0 : static_cast<double>(*dloss)) / counted_rows(terms, labels, logits_view.rows, count);
    parallel_chunks(threads, logits_view.rows, row_grain(logits_view.columns),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) run_row(row, of_mean);
                      stream_fence();
                    });
  }

  void run_row(std::int64_t row, double of_mean) const {
    const std::int64_t from = row * logits_view.stride;
    const std::int64_t to = row * dlogits_view.stride;
    const std::int64_t label = labels[row] - terms.first;  // among the classes that are here
    // Read before the row is overwritten in place.
    const bool known = label >= 0 && label < logits_view.columns;
    const double label_p =
        known ? std::exp(static_cast<double>(logits.at(from + label)) - static_cast<double>(lse[row])) : 0.0;
    const RowGradient gradient(terms, labels[row], logits_view.columns, static_cast<double>(lse[row]), of_mean);
    const std::int64_t step = logits.staged() || dlogits.staged() ? block_elements : direct_columns;
    BlockBuffer x_buffer;
    BlockBuffer y_buffer;
    for (std::int64_t i = 0; i < logits_view.columns; i += step) {
      const std::int64_t size = std::min(step, logits_view.columns - i);
      float* block = dlogits.place(to + i, y_buffer);
      runs().softmax(logits.read(from + i, size, x_buffer), lse[row],
                     static_cast<float>(gradient.slope * gradient.scale), size, block);
      if (gradient.base != 0.0) runs().add_constant(-static_cast<float>(gradient.base), size, block);
      if (label >= i && label < i + size) block[label - i] = gradient.at_label(label_p);
      dlogits.commit(to + i, size, block);
    }
  }
};

/// Both at once: the exponentials of the sum stay in a scratch row in the second-level cache, and the gradient is these
/// times one factor. The logits are read from memory once, and no exponential is taken twice.
struct LossForwardBackward {
  LossForward forward;
  RowView dlogits_view;
  const float* dloss = nullptr;  // null: 1
  Sink dlogits;
  float* scratch = nullptr;  // a row for each thread

  void operator()() const {
    const RowView& view = forward.view;
    const double of_mean = (dloss == nullptr ? 1.0 : static_cast<double>(*dloss)) / forward.rows_of_mean();
    parallel_chunks(forward.threads, view.rows, row_grain(view.columns), [&](std::int64_t begin, std::int64_t end) {
      float* own = scratch + omp_get_thread_num() * scratch_row(view.columns);
      for (std::int64_t row = begin; row < end; ++row) run_row(row, of_mean, own);
      stream_fence();
    });
    forward.store_loss();
  }

  void run_row(std::int64_t row, double of_mean, float* e) const {
    const std::int64_t columns = forward.view.columns;
    const std::int64_t from = row * forward.view.stride;
    const float largest = forward.largest_of(row);
    const std::int64_t read_step = forward.logits.staged() ? block_elements : direct_columns;
    BlockBuffer buffer;
    double sum = 0.0;
    for (std::int64_t i = 0; i < columns; i += read_step) {
      const std::int64_t size = std::min(read_step, columns - i);
      sum += static_cast<double>(runs().exp(forward.logits.read(from + i, size, buffer), largest, size, e + i));
    }
    const std::int64_t label = forward.labels[row];
    const double lse = static_cast<double>(largest) + std::log(sum);
    forward.store_row(row, lse);
    const RowGradient gradient(forward.terms, label, columns, lse, of_mean);
    const auto factor = static_cast<float>(gradient.slope * gradient.scale / sum);
    const std::int64_t to = row * dlogits_view.stride;
    const std::int64_t write_step = dlogits.staged() ? block_elements : direct_columns;
    for (std::int64_t i = 0; i < columns; i += write_step) {
      const std::int64_t size = std::min(write_step, columns - i);
      float* block = dlogits.place(to + i, buffer);
      runs().scale(e + i, factor, size, block);
      if (gradient.base != 0.0) runs().add_constant(-static_cast<float>(gradient.base), size, block);
      if (label >= i && label < i + size) block[label - i] = gradient.at_label(static_cast<double>(e[label]) / sum);
      dlogits.commit(to + i, size, block);
    }
  }
};

/// Of what every part of the classes tells. A row has few parts: nothing here is worth a vector.
struct LossCombine {
  CrossEntropy terms;
  int threads = 1;
  std::int64_t parts = 1, rows = 0;
  const float* lses = nullptr;  ///< [parts, rows], as scores
  const float* scores = nullptr;
  const std::int32_t* labels = nullptr;
  float* loss = nullptr;
  float* lse = nullptr;
  double* row_loss = nullptr;    ///< [rows]
  const float* count = nullptr;  ///< null: of its own rows

  void operator()() const {
    parallel_chunks(threads, rows, row_grain(parts), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) run_row(row);
    });
    store_mean(counted_rows(terms, labels, rows, count), rows, row_loss, loss);
  }

  void run_row(std::int64_t row) const {
    const auto of_part = [&](const float* all, std::int64_t part) {
      return static_cast<double>(all[part * rows + row]);
    };
    double largest = of_part(lses, 0);
    for (std::int64_t part = 1; part < parts; ++part) largest = std::max(largest, of_part(lses, part));
    double sum = 0.0, score = 0.0;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += std::exp(of_part(lses, part) - largest);
      score += of_part(scores, part);
    }
    const double all = largest + std::log(sum);
    lse[row] = static_cast<float>(all);
    row_loss[row] = terms.counts(labels[row]) ? row_loss_of(terms, all, score) : 0.0;
  }
};

/// The rows of logits. Throws Unsupported for types and layouts that the kernels lack.
RowView checked_logits(const OpCall& call, const Named<TensorSpec>& operand) {
  expect_f32_or_bf16(call, operand, {"logits", "dlogits"});
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_type(call, operand, {"loss", "lse", "score", "dloss", "count"}, DType::f32);
  expect_row_major(call, operand, {"labels", "lse"});
  return rows_of(call, operand["logits"]);
}

}  // namespace

// And cross_entropy_partial.
Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  LossForward work;
  work.terms = call.attributes.as<CrossEntropy>();
  work.threads = context.threads;
  work.view = checked_logits(call, {call, tensors});
  return own_plan(call, work,
                  {{"logits", to<&LossForward::logits>},
                   {"labels", to<&LossForward::labels>},
                   {"loss?", to<&LossForward::loss>},
                   {"lse", to<&LossForward::lse>},
                   {"score?", to<&LossForward::score>},
                   {"count?", to<&LossForward::count>},
                   {workspace_operand, to<&LossForward::row_loss>}},
                  static_cast<std::size_t>(work.view.rows) * sizeof(double));
}

Plan plan_cross_entropy_combine(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"lses", "scores", "loss", "lse", "count"}, DType::f32);
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_row_major(call, operand, {"lses", "scores", "labels", "lse"});
  LossCombine work;
  work.terms = call.attributes.as<CrossEntropy>();
  work.threads = context.threads;
  work.parts = operand["lses"].shape[0];
  work.rows = operand["lses"].shape[1];
  return own_plan(call, work,
                  {{"lses", to<&LossCombine::lses>},
                   {"scores", to<&LossCombine::scores>},
                   {"labels", to<&LossCombine::labels>},
                   {"loss", to<&LossCombine::loss>},
                   {"lse", to<&LossCombine::lse>},
                   {"count", to<&LossCombine::count>},
                   {workspace_operand, to<&LossCombine::row_loss>}},
                  static_cast<std::size_t>(work.rows) * sizeof(double));
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  LossForwardBackward work;
  work.forward.terms = call.attributes.as<CrossEntropy>();
  work.forward.threads = context.threads;
  work.forward.view = checked_logits(call, operand);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  const auto loss_bytes = static_cast<std::size_t>((work.forward.view.rows + 7) / 8 * 8) * sizeof(double);
  const auto row_bytes = static_cast<std::size_t>(scratch_row(work.forward.view.columns)) * sizeof(float);
  const std::size_t bytes = loss_bytes + static_cast<std::size_t>(context.threads) * row_bytes;
  const bool streaming = worth_streaming(operand["dlogits"].bytes());
  return plan_of(own_implementation(), bytes, [=](std::span<const Tensor> bound, Workspace space) {
    const Named<Tensor> at(call, bound);
    LossForwardBackward result = work;
    result.forward.logits = Source(at["logits"]);
    result.forward.labels = elements_of<const std::int32_t>(at["labels"]);
    result.forward.loss = elements_of<float>(at["loss"]);
    result.forward.lse = elements_of<float>(at["lse"]);
    if (const Tensor* dloss = at.find("dloss")) result.dloss = elements_of<const float>(*dloss);
    if (const Tensor* count = at.find("count")) result.forward.count = elements_of<const float>(*count);
    result.forward.row_loss = reinterpret_cast<double*>(space.data);
    result.scratch = reinterpret_cast<float*>(space.data + loss_bytes);
    result.dlogits = Sink(at["dlogits"], streaming && at["dlogits"].data != at["logits"].data);
    return result;
  });
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  LossBackward work;
  work.terms = call.attributes.as<CrossEntropy>();
  work.threads = context.threads;
  work.logits_view = checked_logits(call, operand);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  return own_plan(call, work,
                  {{"logits", to<&LossBackward::logits>},
                   {"labels", to<&LossBackward::labels>},
                   {"lse", to<&LossBackward::lse>},
                   {"dloss", to<&LossBackward::dloss>},
                   {"count", to<&LossBackward::count>},
                   {"dlogits", to<&LossBackward::dlogits>}});
}

}  // namespace gpubench::cpu

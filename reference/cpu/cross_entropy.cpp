// Softmax cross-entropy: the largest logit of a row, then the sum of exp(logit - largest); f32 by vector lanes within
// blocks, f64 over blocks. A row stays in the L2 cache between the passes. And the count of labels.
#include "reference/cpu/kernel.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/runs.h"
#include "reference/ops/cross_entropy.h"

namespace gpubench::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Gradient of a row: p slope scale - base; at the label (p slope - target) scale. All 0 for ignored rows, NaN for
/// labels outside the classes.
struct RowGradient {
  double slope = 0.0, scale = 0.0, base = 0.0, target = 0.0;

  /// `here`: number of the logits' classes; `of_mean`: dloss / n.
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

struct LossRows {
  CrossEntropy terms;
  int threads = 1;
  RowView view;  ///< of logits
  const std::int32_t* labels = nullptr;
  const float* count = nullptr;  ///< divisor of the mean; null: the counted rows
  const float* dloss = nullptr;  ///< null: 1

  [[nodiscard]] double rows_of_mean() const {
    if (count != nullptr) return static_cast<double>(*count);
    if (!terms.ignores) return static_cast<double>(view.rows);
    return static_cast<double>(
        std::count_if(labels, labels + view.rows, [this](std::int32_t label) { return terms.counts(label); }));
  }
  [[nodiscard]] double gradient_of_mean() const {
    return (dloss == nullptr ? 1.0 : static_cast<double>(*dloss)) / rows_of_mean();
  }
  [[nodiscard]] double row_loss_of(std::int64_t row, double lse, double score) const {
    if (!terms.counts(labels[row])) return 0.0;
    return terms.z_loss == 0.0 ? lse - score : lse - score + terms.z_loss * lse * lse;
  }
  void store_mean(const double* row_loss, float* loss) const {
    double sum = 0.0;
    for (std::int64_t row = 0; row < view.rows; ++row) sum += row_loss[row];
    *loss = static_cast<float>(sum / rows_of_mean());
  }
};

/// For all classes, or for a part of them, which has scores instead of a loss.
struct LossForward : LossRows {
  Source logits;
  float* loss = nullptr;
  float* lse = nullptr;
  float* score = nullptr;      ///< [rows]
  double* row_loss = nullptr;  ///< [rows]

  void operator()() const {
    parallel_rows(threads, view.rows, view.columns, [this](std::int64_t row) {
      const float largest = largest_of(row);
      store_row(row, static_cast<double>(largest) +
                         std::log(sum_of(row, [&](const float* x, std::int64_t, std::int64_t size) {
                           return runs().exp(x, largest, size, nullptr);
                         })));
    });
    if (score == nullptr) store_mean(row_loss, loss);
  }

  template <class Visit>
  void over_blocks(std::int64_t row, const Visit& visit) const {
    BlockBuffer buffer;
    in_blocks(view.columns, logits.staged() ? block_elements : direct_columns, [&](std::int64_t i, std::int64_t size) {
      visit(logits.read(row * view.stride + i, size, buffer), i, size);
    });
  }
  [[nodiscard]] float largest_of(std::int64_t row) const {
    float largest = -std::numeric_limits<float>::infinity();
    over_blocks(row, [&](const float* x, std::int64_t, std::int64_t size) {
      largest = std::max(largest, runs().largest(x, size));
    });
    return largest;
  }
  template <class Sum>
  [[nodiscard]] double sum_of(std::int64_t row, const Sum& sum) const {
    double total = 0.0;
    over_blocks(
        row, [&](const float* x, std::int64_t i, std::int64_t size) { total += static_cast<double>(sum(x, i, size)); });
    return total;
  }

  /// Reads the row's logits: call before overwriting them.
  void store_row(std::int64_t row, double row_lse) const {
    lse[row] = static_cast<float>(row_lse);
    const double of_row = terms.counts(labels[row]) ? score_of(row) : 0.0;
    if (score != nullptr) {
      score[row] = static_cast<float>(of_row);
    } else {
      row_loss[row] = row_loss_of(row, row_lse, of_row);
    }
  }

  /// The part of a row's loss that is subtracted from its log-sum-exp, from the local classes.
  [[nodiscard]] double score_of(std::int64_t row) const {
    if (!terms.is_class(labels[row], view.columns)) return nan;
    const std::int64_t here = labels[row] - terms.first;
    double sum = 0.0;
    if (here >= 0 && here < view.columns)
      sum = (1.0 - terms.label_smoothing) * static_cast<double>(logits.at(row * view.stride + here));
    if (terms.label_smoothing == 0.0) return sum;
    const double all =
        sum_of(row, [](const float* x, std::int64_t, std::int64_t size) { return runs().sum(x, size, nullptr); });
    return sum + terms.label_smoothing / static_cast<double>(terms.all_classes(view.columns)) * all;
  }
};

/// Stores a row of dlogits. `exponentials` writes p slope scale of a block. `label`: index among the local classes;
/// `label_p`: its p.
template <class Exponentials>
void store_gradient(const RowGradient& gradient, std::int64_t label, double label_p, const Sink& to, std::int64_t first,
                    std::int64_t columns, std::int64_t step, const Exponentials& exponentials) {
  BlockBuffer buffer;
  in_blocks(columns, step, [&](std::int64_t i, std::int64_t size) {
    float* block = to.place(first + i, buffer);
    exponentials(i, size, block);
    if (gradient.base != 0.0) runs().add_constant(-static_cast<float>(gradient.base), size, block);
    if (label >= i && label < i + size) block[label - i] = gradient.at_label(label_p);
    to.commit(first + i, size, block);
  });
}

struct LossBackward : LossRows {
  RowView dlogits_view;
  Source logits;
  const float* lse = nullptr;
  Sink dlogits;

  void operator()() const {
    parallel_rows(threads, view.rows, view.columns,
                  [this, of_mean = gradient_of_mean()](std::int64_t row) { run_row(row, of_mean); });
  }

  void run_row(std::int64_t row, double of_mean) const {
    const std::int64_t from = row * view.stride, label = labels[row] - terms.first;
    const auto row_lse = static_cast<double>(lse[row]);
    // Read before the row is overwritten in place.
    const bool known = label >= 0 && label < view.columns;
    const double label_p = known ? std::exp(static_cast<double>(logits.at(from + label)) - row_lse) : 0.0;
    const RowGradient gradient(terms, labels[row], view.columns, row_lse, of_mean);
    const auto factor = static_cast<float>(gradient.slope * gradient.scale);
    BlockBuffer buffer;
    store_gradient(gradient, label, label_p, dlogits, row * dlogits_view.stride, view.columns,
                   logits.staged() || dlogits.staged() ? block_elements : direct_columns,
                   [&](std::int64_t i, std::int64_t size, float* block) {
                     runs().softmax(logits.read(from + i, size, buffer), lse[row], factor, size, block);
                   });
  }
};

/// Loss and gradient at once: a row's exponentials stay in a scratch row in the L2 cache, and the gradient is a
/// multiple of them. Reads the logits from memory once and computes each exponential once.
struct LossForwardBackward : LossForward {
  RowView dlogits_view;
  Sink dlogits;

  /// Row losses in the workspace, followed by a row of exponentials per thread.
  [[nodiscard]] std::int64_t losses() const { return (view.rows + 7) / 8 * 8; }

  void operator()() const {
    parallel_rows(threads, view.rows, view.columns, [this, of_mean = gradient_of_mean()](std::int64_t row) {
      auto* rows = reinterpret_cast<float*>(row_loss + losses());
      run_row(row, of_mean, rows + omp_get_thread_num() * scratch_row(view.columns));
    });
    store_mean(row_loss, loss);
  }

  void run_row(std::int64_t row, double of_mean, float* e) const {
    const float largest = largest_of(row);
    const double sum = sum_of(
        row, [&](const float* x, std::int64_t i, std::int64_t size) { return runs().exp(x, largest, size, e + i); });
    const std::int64_t label = labels[row];
    const double row_lse = static_cast<double>(largest) + std::log(sum);
    store_row(row, row_lse);
    const RowGradient gradient(terms, label, view.columns, row_lse, of_mean);
    const double label_p = label >= 0 && label < view.columns ? static_cast<double>(e[label]) / sum : 0.0;
    const auto factor = static_cast<float>(gradient.slope * gradient.scale / sum);
    store_gradient(gradient, label, label_p, dlogits, row * dlogits_view.stride, view.columns,
                   dlogits.staged() ? block_elements : direct_columns,
                   [&](std::int64_t i, std::int64_t size, float* block) { runs().scale(e + i, factor, size, block); });
  }
};

/// Combines the results of the parts of the classes; the view has a column per part. There are few parts, so scalar
/// code is sufficient.
struct LossCombine : LossRows {
  const float* lses = nullptr;  ///< [parts, rows]; likewise scores
  const float* scores = nullptr;
  float* loss = nullptr;
  float* lse = nullptr;
  double* row_loss = nullptr;  ///< [rows]

  void operator()() const {
    parallel_rows(threads, view.rows, view.columns, [this](std::int64_t row) { run_row(row); });
    store_mean(row_loss, loss);
  }

  void run_row(std::int64_t row) const {
    const auto of_part = [&](const float* all, std::int64_t part) {
      return static_cast<double>(all[part * view.rows + row]);
    };
    double largest = of_part(lses, 0);
    for (std::int64_t part = 1; part < view.columns; ++part) largest = std::max(largest, of_part(lses, part));
    double sum = 0.0, score = 0.0;
    for (std::int64_t part = 0; part < view.columns; ++part) {
      sum += std::exp(of_part(lses, part) - largest);
      score += of_part(scores, part);
    }
    const double all = largest + std::log(sum);
    lse[row] = static_cast<float>(all);
    row_loss[row] = row_loss_of(row, all, score);
  }
};

struct LabelCount {
  CountLabels attributes;
  std::int64_t rows = 0;
  const std::int32_t* labels = nullptr;
  float* y = nullptr;

  void operator()() const {
    const std::int64_t ignored = std::count(labels, labels + rows, attributes.ignore_index);
    *y = static_cast<float>(static_cast<double>(rows - ignored) / attributes.parts);
  }
};

/// Throws Unsupported for types and layouts that the kernels lack.
template <class Work>
Work loss_work(const OpCall& call, const Named<TensorSpec>& operand, const CpuContext& context) {
  expect_f32_or_bf16(call, operand, {"logits", "dlogits"});
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_type(call, operand, {"lses", "scores", "loss", "lse", "score", "dloss", "count"}, DType::f32);
  expect_row_major(call, operand, {"lses", "scores", "labels", "lse"});
  Work work;
  work.terms = call.attributes.as<CrossEntropy>();
  work.threads = context.threads;
  if (const TensorSpec* logits = operand.find("logits")) work.view = rows_of(call, *logits);
  return work;
}

// Also cross_entropy_partial. A label outside the classes gives a loss of NaN and no one-hot term; in the combined op a
// row of NaN.
Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = LossForward;
  const Work work = loss_work<Work>(call, {call, tensors}, context);
  return own_plan(call, work,
                  {{"logits", to<&Work::logits>},
                   {"labels", to<&Work::labels>},
                   {"loss?", to<&Work::loss>},
                   {"lse", to<&Work::lse>},
                   {"score?", to<&Work::score>},
                   {"count?", to<&Work::count>},
                   {workspace_operand, to<&Work::row_loss>}},
                  static_cast<std::size_t>(work.view.rows) * sizeof(double));
}

Plan plan_cross_entropy_combine(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = LossCombine;
  const Named<TensorSpec> operand(call, tensors);
  Work work = loss_work<Work>(call, operand, context);
  work.view = {operand["lses"].shape[1], operand["lses"].shape[0]};
  return own_plan(call, work,
                  {{"lses", to<&Work::lses>},
                   {"scores", to<&Work::scores>},
                   {"labels", to<&Work::labels>},
                   {"loss", to<&Work::loss>},
                   {"lse", to<&Work::lse>},
                   {"count", to<&Work::count>},
                   {workspace_operand, to<&Work::row_loss>}},
                  static_cast<std::size_t>(work.view.rows) * sizeof(double));
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CpuContext& context) {
  using Work = LossForwardBackward;
  const Named<TensorSpec> operand(call, tensors);
  Work work = loss_work<Work>(call, operand, context);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  return own_plan(call, work,
                  {{"logits", to<&Work::logits>},
                   {"labels", to<&Work::labels>},
                   {"dloss", to<&Work::dloss>},
                   {"count", to<&Work::count>},
                   {"loss", to<&Work::loss>},
                   {"lse", to<&Work::lse>},
                   {"dlogits", to<&Work::dlogits>},
                   {workspace_operand, to<&Work::row_loss>}},
                  static_cast<std::size_t>(work.losses()) * sizeof(double) +
                      static_cast<std::size_t>(context.threads * scratch_row(work.view.columns)) * sizeof(float));
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = LossBackward;
  const Named<TensorSpec> operand(call, tensors);
  Work work = loss_work<Work>(call, operand, context);
  work.dlogits_view = rows_of(call, operand["dlogits"]);
  return own_plan(call, work,
                  {{"logits", to<&Work::logits>},
                   {"labels", to<&Work::labels>},
                   {"lse", to<&Work::lse>},
                   {"dloss", to<&Work::dloss>},
                   {"count", to<&Work::count>},
                   {"dlogits", to<&Work::dlogits>}});
}

Plan plan_count_labels(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext&) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"labels"}, DType::i32);
  expect_type(call, operand, {"y"}, DType::f32);
  expect_row_major(call, operand, {"labels"});
  LabelCount work;
  work.attributes = call.attributes.as<CountLabels>();
  work.rows = operand["labels"].shape.elements();
  return own_plan(call, work, {{"labels", to<&LabelCount::labels>}, {"y", to<&LabelCount::y>}});
}

}  // namespace

Ops cross_entropy_ops() {
  return {{count_labels_kind, plan_count_labels},
          {cross_entropy_backward_kind, plan_cross_entropy_backward},
          {cross_entropy_combine_kind, plan_cross_entropy_combine},
          {cross_entropy_forward_kind, plan_cross_entropy_forward},
          {cross_entropy_forward_backward_kind, plan_cross_entropy_forward_backward, Gain::measured},
          {cross_entropy_partial_kind, plan_cross_entropy_forward}};
}

}  // namespace gpubench::cpu

// Softmax and its gradient. A row stays in the L2 cache between passes. Sums are f32 by vector lanes within blocks, f64
// over blocks.
#include <omp.h>

#include <algorithm>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/softmax.h"

namespace gpubench::cpu {
namespace {

/// Rows of up to three tensors of one shape; the forward reads only x.
struct SoftmaxRows {
  int threads = 1;
  RowView first_view, second_view, to_view;
  Source first, second;
  Sink to;

  template <class RunRow>
  void over_rows(const RunRow& run_row) const {
    parallel_rows(threads, to_view.rows, to_view.columns, run_row);
  }
  template <class Visit>
  void over_blocks(const Visit& visit) const {
    const bool staged = first.staged() || second.staged() || to.staged();
    in_blocks(to_view.columns, staged ? block_elements : direct_columns, visit);
  }
};

/// Computes each exponential once: a row's exponentials stay in scratch until their sum is known.
struct SoftmaxForwardWork : SoftmaxRows {
  float* scratch = nullptr;  ///< a row per thread

  void operator()() const {
    over_rows([this](std::int64_t row) {
      BlockBuffer buffer;
      float* e = scratch + omp_get_thread_num() * scratch_row(to_view.columns);
      const std::int64_t from = row * first_view.stride;
      float largest = -std::numeric_limits<float>::infinity();
      over_blocks([&](std::int64_t i, std::int64_t count) {
        largest = std::max(largest, runs().largest(first.read(from + i, count, buffer), count));
        if (row + 1 < to_view.rows) first.prefetch(from + first_view.stride + i, count);
      });
      double sum = 0.0;
      over_blocks([&](std::int64_t i, std::int64_t count) {
        sum += static_cast<double>(runs().exp(first.read(from + i, count, buffer), largest, count, e + i));
      });
      over_blocks([&](std::int64_t i, std::int64_t count) {
        float* block = to.place(row * to_view.stride + i, buffer);
        runs().scale(e + i, static_cast<float>(1.0 / sum), count, block);
        to.commit(row * to_view.stride + i, count, block);
      });
    });
  }
};

struct SoftmaxBackwardWork : SoftmaxRows {
  void operator()() const {
    over_rows([this](std::int64_t row) {
      BlockBuffer of_y, of_dy, out;
      const auto y = [&](std::int64_t i, std::int64_t count) {
        return first.read(row * first_view.stride + i, count, of_y);
      };
      const auto dy = [&](std::int64_t i, std::int64_t count) {
        return second.read(row * second_view.stride + i, count, of_dy);
      };
      double sum = 0.0;
      over_blocks([&](std::int64_t i, std::int64_t count) {
        sum += static_cast<double>(runs().dot(y(i, count), dy(i, count), count));
      });
      over_blocks([&](std::int64_t i, std::int64_t count) {
        float* block = to.place(row * to_view.stride + i, out);
        runs().softmax_backward(y(i, count), dy(i, count), static_cast<float>(sum), count, block);
        to.commit(row * to_view.stride + i, count, block);
      });
    });
  }
};

template <class Work>
Work softmax_work(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  for (const TensorSpec& tensor : tensors) expect_f32_or_bf16(call, tensor);
  expect_f32_sums(call);
  Work work;
  work.threads = context.threads;
  work.first_view = rows_of(call, tensors[0]);
  work.second_view = rows_of(call, tensors[1]);
  work.to_view = rows_of(call, tensors.back());
  return work;
}

Plan plan_softmax_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto work = softmax_work<SoftmaxForwardWork>(call, tensors, context);
  return own_plan(call, work,
                  {{"x", to<&SoftmaxForwardWork::first>},
                   {"y", to<&SoftmaxForwardWork::to>},
                   {workspace_operand, to<&SoftmaxForwardWork::scratch>}},
                  static_cast<std::size_t>(context.threads) *
                      static_cast<std::size_t>(scratch_row(work.to_view.columns)) * sizeof(float));
}

Plan plan_softmax_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return own_plan(call, softmax_work<SoftmaxBackwardWork>(call, tensors, context),
                  {{"y", to<&SoftmaxBackwardWork::first>},
                   {"dy", to<&SoftmaxBackwardWork::second>},
                   {"dx", to<&SoftmaxBackwardWork::to>}});
}

}  // namespace

Ops softmax_ops() {
  return {{softmax_backward_kind, plan_softmax_backward}, {softmax_forward_kind, plan_softmax_forward}};
}

}  // namespace gpubench::cpu

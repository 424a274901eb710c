// With xhat = (x - mean) rstd and h = dy gamma, per row of n:
//   dx = rstd (h - sum(h) / n - xhat sum(h xhat) / n),   dgamma = sum over rows of dy xhat,   dbeta = sum of dy
// RMS norm has no mean: xhat = x rstd, without sum(h) and dbeta. A thread sums the parameter gradients of its rows in
// the workspace; the threads' sums are added in order.
#include <algorithm>
#include <array>
#include <optional>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/norm.h"

namespace gpubench::cpu {
namespace {

/// For dy that is already multiplied by gamma.
constexpr auto ones = [] {
  std::array<float, block_elements> all{};
  for (float& one : all) one = 1.0F;
  return all;
}();

struct NormBackward {
  int threads = 1;
  RowView dy_view, x_view, dx_view;
  Source dy, x, gamma;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  Sink dx, dgamma, dbeta;
  float* partial = nullptr;  ///< [parts, 2, columns]: dgamma, then dbeta
  bool centered = true;
  std::optional<DType> rounded{};  ///< rounding type of h and of dgamma's xhat; null: unrounded

  [[nodiscard]] float mean_of(std::int64_t row) const { return centered ? mean[row] : 0.0F; }

  [[nodiscard]] int parts() const { return chunk_count(threads, x_view.rows, row_grain(x_view.columns)); }
  [[nodiscard]] float* partial_of(std::int64_t part) const { return partial + part * 2 * x_view.columns; }

  void operator()() const {
    parallel_parts(threads, x_view.rows, row_grain(x_view.columns), [this](std::int64_t part, const Chunk& rows) {
      float* sums = partial_of(part);
      std::fill_n(sums, 2 * x_view.columns, 0.0F);
      for (std::int64_t row = rows.begin; row < rows.end; ++row) write_dx(row, reduce_row(row, sums));
      stream_fence();
    });
    parallel_chunks(threads, x_view.columns, element_grain,
                    [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  }

  NormTerms reduce_row(std::int64_t row, float* sums) const {
    const std::int64_t n = x_view.columns;
    BlockBuffer dy_buffer, x_buffer, gamma_buffer;
    double h = 0.0, h_xhat = 0.0;
    in_blocks(n, block_elements, [&](std::int64_t i, std::int64_t size) {
      if (rounded) {
        h_xhat += static_cast<double>(reduce_rounded(row, i, size, sums));
        return;
      }
      const NormTerms block = runs().norm_sums(
          dy.read(row * dy_view.stride + i, size, dy_buffer), x.read(row * x_view.stride + i, size, x_buffer),
          gamma.gather(i, size, gamma_buffer), mean_of(row), rstd[row], size, sums + i, sums + n + i);
      h += static_cast<double>(block.h);
      h_xhat += static_cast<double>(block.h_xhat);
    });
    const auto count = static_cast<double>(n);
    return {centered ? static_cast<float>(h / count) : 0.0F, static_cast<float>(h_xhat / count)};
  }

  /// h = dy gamma of a block of a row, rounded, in `buffer`.
  const float* rounded_h(std::int64_t row, std::int64_t i, std::int64_t size, BlockBuffer& buffer) const {
    BlockBuffer gamma_buffer;
    float* h = buffer.values.data();
    const float* slope = dy.read(row * dy_view.stride + i, size, buffer);
    if (slope != h) std::copy_n(slope, size, h);
    runs().multiply(gamma.gather(i, size, gamma_buffer), size, h);
    round_elements(*rounded, size, h);
    return h;
  }

  /// Adds dy xhat, rounded, to dgamma; returns the sum of h xhat.
  float reduce_rounded(std::int64_t row, std::int64_t i, std::int64_t size, float* sums) const {
    BlockBuffer dy_buffer, x_buffer, h_buffer, xhat_buffer;
    float* xhat = xhat_buffer.values.data();
    runs().scale(x.read(row * x_view.stride + i, size, x_buffer), rstd[row], size, xhat);
    const float sum = runs().dot(rounded_h(row, i, size, h_buffer), xhat, size);
    round_elements(*rounded, size, xhat);
    runs().multiply(dy.read(row * dy_view.stride + i, size, dy_buffer), size, xhat);
    runs().add(xhat, size, sums + i);
    return sum;
  }

  void write_dx(std::int64_t row, NormTerms means) const {
    BlockBuffer dy_buffer, x_buffer, gamma_buffer, dx_buffer;
    in_blocks(x_view.columns, block_elements, [&](std::int64_t i, std::int64_t size) {
      const std::int64_t first = row * dx_view.stride + i;
      float* block = dx.place(first, dx_buffer);
      const float* slope =
          rounded ? rounded_h(row, i, size, dy_buffer) : dy.read(row * dy_view.stride + i, size, dy_buffer);
      runs().norm_dx(slope, x.read(row * x_view.stride + i, size, x_buffer),
                     rounded ? ones.data() : gamma.gather(i, size, gamma_buffer), mean_of(row), rstd[row], means, size,
                     block);
      dx.commit(first, size, block);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    in_blocks(end - begin, block_elements, [&](std::int64_t i, std::int64_t size) {
      combine_block(dgamma, 0, begin + i, size);
      if (centered) combine_block(dbeta, x_view.columns, begin + i, size);
    });
  }

  void combine_block(const Sink& sink, std::int64_t offset, std::int64_t first, std::int64_t size) const {
    BlockBuffer buffer;
    float* block = sink.place(first, buffer);
    std::copy_n(partial_of(0) + offset + first, size, block);
    for (int part = 1; part < parts(); ++part) runs().add(partial_of(part) + offset + first, size, block);
    sink.commit(first, size, block);
  }
};

// Statistics f32.
Plan plan_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"dy", "x", "gamma", "dx", "dgamma", "dbeta"});
  expect_row_major(call, operand, {"gamma", "mean", "rstd", "dgamma", "dbeta"});
  expect_type(call, operand, {"mean", "rstd"}, DType::f32);
  NormBackward work;
  work.threads = context.threads;
  work.dy_view = rows_of(call, operand["dy"]);
  work.x_view = rows_of(call, operand["x"]);
  work.dx_view = rows_of(call, operand["dx"]);
  work.centered = operand.find("mean") != nullptr;
  if (row_norm_of(call).rounds_before_gamma) work.rounded = context.stored_type(operand["dy"]);
  const auto workspace_bytes = static_cast<std::size_t>(work.parts() * 2 * work.x_view.columns) * sizeof(float);
  return own_plan(call, work,
                  {{"dy", to<&NormBackward::dy>},
                   {"x", to<&NormBackward::x>},
                   {"gamma", to<&NormBackward::gamma>},
                   {"mean?", to<&NormBackward::mean>},
                   {"rstd", to<&NormBackward::rstd>},
                   {"dx", to<&NormBackward::dx>},
                   {"dgamma", to<&NormBackward::dgamma>},
                   {"dbeta?", to<&NormBackward::dbeta>},
                   {workspace_operand, to<&NormBackward::partial>}},
                  workspace_bytes);
}

}  // namespace

Ops norm_backward_ops() {
  return {{layer_norm_backward_kind, plan_norm_backward}, {rms_norm_backward_kind, plan_norm_backward}};
}

}  // namespace gpubench::cpu

// Sum over rows, read in memory order. A thread sums its rows in f32 in the workspace, adding four rows at a time; the
// threads' sums are added in order. With several sums, each belongs to one thread.
#include "reference/cpu/kernel.h"

#include <algorithm>
#include <array>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/bias_gradient.h"

namespace gpubench::cpu {
namespace {

constexpr std::size_t group_rows = 4;

struct Sum {
  int threads = 1;
  RowView view;
  RowView sums;  ///< of y, one per share of x's rows
  Source x;
  Sink y;
  float* partial = nullptr;  ///< [parts, columns]

  [[nodiscard]] int parts_of_one() const { return chunk_count(threads, view.rows, row_grain(view.columns)); }
  [[nodiscard]] std::int64_t parts() const { return sums.rows > 1 ? sums.rows : parts_of_one(); }
  [[nodiscard]] Chunk rows_of_part(std::int64_t part) const {
    const std::int64_t rows = view.rows / sums.rows;
    if (sums.rows > 1) return {part * rows, (part + 1) * rows};
    return chunk_of(view.rows, row_grain(view.columns), parts_of_one(), static_cast<int>(part));
  }
  [[nodiscard]] float* partial_of(std::int64_t part) const { return partial + part * view.columns; }

  void operator()() const {
    parallel_chunks(threads, parts(), 1, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) run_part(part);
    });
    parallel_chunks(threads, sums.elements(), element_grain,
                    [this](std::int64_t begin, std::int64_t end) { combine(begin, end); });
  }

  void run_part(std::int64_t part) const {
    float* sum = partial_of(part);
    std::fill_n(sum, view.columns, 0.0F);
    const Chunk rows = rows_of_part(part);
    std::int64_t row = rows.begin;
    for (; row + static_cast<std::int64_t>(group_rows) <= rows.end; row += group_rows) add_group(row, sum);
    BlockBuffer buffer;
    for (; row < rows.end; ++row) {
      in_blocks(view.columns, block_elements, [&](std::int64_t i, std::int64_t size) {
        runs().add(x.read(row * view.stride + i, size, buffer), size, sum + i);
      });
    }
  }

  void add_group(std::int64_t row, float* sum) const {
    std::array<BlockBuffer, group_rows> buffers;
    std::array<const float*, group_rows> blocks{};
    in_blocks(view.columns, block_elements, [&](std::int64_t i, std::int64_t size) {
      for (std::size_t k = 0; k < group_rows; ++k)
        blocks[k] = x.read((row + static_cast<std::int64_t>(k)) * view.stride + i, size, buffers[k]);
      runs().add_four(blocks[0], blocks[1], blocks[2], blocks[3], size, sum + i);
    });
  }

  void combine(std::int64_t begin, std::int64_t end) const {
    BlockBuffer buffer;
    std::int64_t size = 0;
    for (std::int64_t i = begin; i < end; i += size) {
      const std::int64_t row = i / sums.columns, column = i % sums.columns, to = row * sums.stride + column;
      size = std::min({block_elements, end - i, sums.columns - column});
      float* block = y.place(to, buffer);
      std::copy_n(partial_of(0) + i, size, block);
      for (int part = 1; part < (sums.rows > 1 ? 1 : parts_of_one()); ++part)
        runs().add(partial_of(part) + i, size, block);
      y.commit(to, size, block);
    }
  }
};

Plan plan_column_sum(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  for (const TensorSpec& tensor : tensors) expect_f32_or_bf16(call, tensor);
  Sum work;
  work.threads = context.threads;
  work.view = rows_of(call, tensors[0]);
  work.sums = rows_of(call, tensors[1]);
  return own_plan(call, work, {{"x", to<&Sum::x>}, {"y", to<&Sum::y>}, {workspace_operand, to<&Sum::partial>}},
                  static_cast<std::size_t>(work.parts() * work.view.columns) * sizeof(float));
}

}  // namespace

Ops column_sum_ops() { return {{column_sum_kind, plan_column_sum}}; }

}  // namespace gpubench::cpu

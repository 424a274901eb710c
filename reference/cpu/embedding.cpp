// Look-up of rows and its gradient. The gradient visits each table row once: a stable counting sort orders the tokens,
// so a row is the sum of its occurrences in text order, in f32, rounded once, for any number of threads. Rows without
// occurrences are zeroed in the same pass.
#include "reference/cpu/kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/runs.h"
#include "reference/ops/embedding.h"

namespace gpubench::cpu {
namespace {

struct LookUp {
  TableRows rows;
  int threads = 1;
  RowView table_view, y_view;
  std::int64_t element_bytes = 0;
  const std::byte* table = nullptr;
  const std::int32_t* tokens = nullptr;
  Target y;

  void operator()() const {
    parallel_rows(threads, y_view.rows, y_view.columns, [this](std::int64_t row) { copy_row(row); });
  }

  void copy_row(std::int64_t row) const {
    const std::int64_t bytes = y_view.columns * element_bytes, here = tokens[row] - rows.first;
    const std::int64_t at = row * y_view.stride * element_bytes;
    if (here >= 0 && here < table_view.rows)
      return y.store(at, table + here * table_view.stride * element_bytes, bytes);
    std::memset(y.data + at, rows.knows(tokens[row], table_view.rows) ? 0 : 0xFF, static_cast<std::size_t>(bytes));
  }
};

struct ScatterAdd {
  std::int64_t first_token = 0;     ///< token of the table's first row
  std::int64_t padding_token = -1;  ///< ignored token
  int threads = 1;
  RowView dy_view, table_view;
  Source dy;
  Sink dtable;
  const std::int32_t* tokens = nullptr;
  std::int32_t* ends = nullptr;  ///< [rows + 1]: end of the places of row v - 1, start of those of row v

  /// [tokens], behind `ends`: positions sorted by token.
  [[nodiscard]] std::int32_t* order() const { return ends + table_view.rows + 1; }

  void operator()() const {
    sort_tokens();
    parallel_rows(threads, table_view.rows, table_view.columns, [this](std::int64_t row) { sum_row(row); });
  }

  [[nodiscard]] std::int64_t row_of(std::int64_t position) const { return tokens[position] - first_token; }
  [[nodiscard]] bool adds(std::int64_t position) const {
    return row_of(position) >= 0 && row_of(position) < table_view.rows && tokens[position] != padding_token;
  }

  void sort_tokens() const {
    std::fill_n(ends, table_view.rows + 1, 0);
    for (std::int64_t i = 0; i < dy_view.rows; ++i) {
      if (adds(i)) ++ends[row_of(i) + 1];
    }
    for (std::int64_t v = 0; v < table_view.rows; ++v) ends[v + 1] += ends[v];
    // ends[v] is now the start of token v; placing advances it to the end, which is the start of v + 1.
    for (std::int64_t i = 0; i < dy_view.rows; ++i) {
      if (adds(i)) order()[ends[row_of(i)]++] = static_cast<std::int32_t>(i);
    }
  }

  void sum_row(std::int64_t row) const {
    const std::int32_t begin = row == 0 ? 0 : ends[row - 1];
    const std::int32_t end = ends[row];
    BlockBuffer sum_buffer, dy_buffer;
    in_blocks(table_view.columns, block_elements, [&](std::int64_t i, std::int64_t size) {
      const std::int64_t first = row * table_view.stride + i;
      float* sum = dtable.place(first, sum_buffer);
      if (begin == end) std::fill_n(sum, size, 0.0F);
      for (std::int32_t k = begin; k < end; ++k) {
        const float* from = dy.gather(order()[k] * dy_view.stride + i, size, dy_buffer);
        k == begin ? void(std::copy_n(from, size, sum)) : runs().add(from, size, sum);
      }
      // Prefetches the first occurrence of the next row.
      if (end < ends[table_view.rows - 1]) dy.prefetch(order()[end] * dy_view.stride + i, size);
      dtable.commit(first, size, sum);
    });
  }
};

void expect_tokens(const OpCall& call, const TensorSpec& tokens) {
  expect_type(call, tokens, DType::i32);
  expect_row_major(call, tokens);
  if (tokens.shape.elements() > std::numeric_limits<std::int32_t>::max()) {
    refuse(call,
           fmt::format("{} has {} tokens; expected fewer than 2^31", tokens.to_string(), tokens.shape.elements()));
  }
}

// Any type of table. A token outside the table gives a row of NaN (all bits set).
Plan plan_embedding_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_tokens(call, operand["tokens"]);
  LookUp work;
  work.rows = call.attributes.as<TableRows>();
  work.threads = context.threads;
  work.table_view = rows_of(call, operand["table"]);
  work.y_view = rows_of(call, operand["y"]);
  work.element_bytes = static_cast<std::int64_t>(size_of(operand["table"].dtype));
  return own_plan(call, work, {{"table", to<&LookUp::table>}, {"tokens", to<&LookUp::tokens>}, {"y", to<&LookUp::y>}});
}

// Sums in f32. Ignores tokens outside the table.
Plan plan_embedding_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_f32_or_bf16(call, tensors[0]);
  expect_f32_or_bf16(call, tensors[2]);
  expect_tokens(call, tensors[1]);
  ScatterAdd work;
  work.first_token = call.attributes.as<TableRows>().first;
  work.padding_token = call.attributes.as<TableRows>().padding_token;
  work.threads = context.threads;
  work.dy_view = rows_of(call, tensors[0]);
  work.table_view = rows_of(call, tensors[2]);
  return own_plan(call, work,
                  {{"dy", to<&ScatterAdd::dy>},
                   {"tokens", to<&ScatterAdd::tokens>},
                   {"dtable", to<&ScatterAdd::dtable>},
                   {workspace_operand, to<&ScatterAdd::ends>}},
                  static_cast<std::size_t>(work.table_view.rows + 1 + work.dy_view.rows) * sizeof(std::int32_t));
}

}  // namespace

Ops embedding_ops() {
  return {{embedding_backward_kind, plan_embedding_backward}, {embedding_forward_kind, plan_embedding_forward}};
}

}  // namespace gpubench::cpu

#include "reference/cpu/attention.h"

#include <fmt/core.h>

#include <algorithm>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

AttentionProblem attention_problem(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto& attributes = call.attributes.as<Attention>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& q = operand["q"];
  expect_f32_or_bf16(call, q);
  operand.each({"do", "q", "k", "v", "o", "dq", "dk", "dv"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, q.dtype);
    expect_contiguous_last_axis(call, tensor);
  });
  operand.each({"lse", "sinks", "dsinks"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, DType::f32);
    expect_row_major(call, tensor);
  });
  operand.each({"documents"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, DType::i32);
    expect_row_major(call, tensor);
  });
  // The maximum is taken before scaling, which must not change the order.
  const auto scale = static_cast<float>(attributes.scale);
  if (!(scale > 0.0F)) refuse(call, fmt::format("scale is {}; expected a positive number", attributes.scale));

  AttentionProblem problem;
  problem.extents = extents_of(q.shape, operand["k"].shape, operand["v"].shape);
  problem.attributes = attributes;
  problem.scale = scale;
  problem.threads = context.threads;
  problem.is_bf16 = q.dtype == DType::bf16;
  return problem;
}

KeyMask::KeyMask(const AttentionProblem& problem, const Tensor* documents, std::int32_t* room)
    : queries_(problem.extents.s),
      keys_(problem.extents.t),
      window_(problem.attributes.window),
      causal_(problem.attributes.causal) {
  if (documents == nullptr) return;
  documents_ = elements_of<const std::int32_t>(*documents);
  count_ = documents->spec.shape[1];
  first_ = room;
  end_ = room + problem.extents.b * queries_;
}

void KeyMask::find_documents(std::int64_t batch) const {
  std::int32_t* first = first_ + batch * queries_;
  std::int32_t* end = end_ + batch * queries_;
  std::fill(end, end + queries_, 0);
  for (std::int64_t i = batch * count_; i < (batch + 1) * count_; ++i) {
    if (documents_[i] >= 0 && documents_[i] < queries_) end[documents_[i]] = 1;  // where a document begins
  }
  std::int32_t begin = 0;
  for (std::int32_t query = 0; query < queries_; ++query) {
    if (end[query] != 0) begin = query;
    first[query] = begin;
  }
  auto next = static_cast<std::int32_t>(queries_);
  for (auto query = static_cast<std::int32_t>(queries_ - 1); query >= 0; --query) {
    end[query] = next;
    if (first[query] == query) next = query;
  }
}

void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy(from[row], from[row] + columns, to[row]);
}
void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  round_block(from, rows, columns, to);
}

}  // namespace gpubench::cpu

#include "reference/cpu/attention_problem.h"

#include <fmt/core.h>

#include <algorithm>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

AttentionProblem attention_problem(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto& attributes = call.attributes.as<Attention>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& q = operand["q"];
  expect_f32_or_bf16(call, q);
  operand.each({"do", "q", "k", "v", "o", "dq", "dk", "dv"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, q.dtype);
    if (!tensor.layout.blocks.empty() || (tensor.layout.strides.back() != 1 && tensor.shape[-1] > 1)) {
      refuse(call, fmt::format("tensor {} has layout {}; expected a contiguous last axis", tensor.to_string(),
                               tensor.layout.to_string(tensor.shape)));
    }
  });
  expect_type(call, operand["lse"], DType::f32);
  expect_row_major(call, operand["lse"]);
  // The largest score is sought before scaling, which needs the order to stay.
  const auto scale = static_cast<float>(attributes.scale);
  if (!(scale > 0.0F)) refuse(call, fmt::format("scale is {}; expected a positive number", attributes.scale));

  AttentionProblem problem;
  problem.extents = extents_of(q.shape, operand["k"].shape, operand["v"].shape);
  problem.causal = attributes.causal;
  problem.scale = scale;
  problem.threads = context.threads;
  problem.is_bf16 = q.dtype == DType::bf16;
  return problem;
}

void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy(from[row], from[row] + columns, to[row]);
}
void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  if (columns % block_grain == 0) {
    round_block(from, rows, columns, to);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) narrow_run(from[row], columns, to[row]);
}

}  // namespace gpubench::cpu

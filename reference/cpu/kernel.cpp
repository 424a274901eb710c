#include "reference/cpu/kernel.h"

#include <fmt/core.h>
#include <hwy/targets.h>

#include <algorithm>
#include <initializer_list>

namespace gpubench::cpu {
namespace {

const char* vector_units() {
#if HWY_ARCH_ARM_A64
  return "neon";
#else
  const std::int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX3) != 0) return "avx512";
  if ((targets & HWY_AVX2) != 0) return "avx2";
  return (targets & HWY_SSE4) != 0 ? "sse4" : "generic";
#endif
}

}  // namespace

void refuse(const OpCall& call, const std::string& why) {
  throw Unsupported(fmt::format("cpu {} '{}': {}", call.kind.name, call.label, why));
}

void refuse_layout(const OpCall& call, const TensorSpec& tensor, std::string_view expected) {
  refuse(call, fmt::format("tensor {} has layout {}; expected {}", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape), expected));
}

void expect_row_major(const OpCall& call, const TensorSpec& tensor) {
  if (!tensor.layout.is_row_major(tensor.shape)) refuse_layout(call, tensor, "row_major");
}

std::string own_implementation() { return std::string("gpubench:") + vector_units(); }

void expect_contiguous_last_axis(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.blocks.empty() && (tensor.shape[-1] <= 1 || tensor.layout.strides.back() == 1)) return;
  refuse_layout(call, tensor, "a contiguous last axis");
}

RowView rows_of(const OpCall& call, const TensorSpec& tensor) {
  if (const std::optional<RowView> view = row_view(tensor)) return *view;
  refuse_layout(call, tensor, "a contiguous last axis and evenly spaced rows");
}

void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.dtype == DType::f32 || tensor.dtype == DType::bf16) return;
  refuse(call, fmt::format("tensor {}; expected f32 or bf16", tensor.to_string()));
}

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type) {
  if (tensor.dtype == type) return;
  refuse(call, fmt::format("tensor {}; expected {}", tensor.to_string(), name(type)));
}

void expect_f32_sums(const OpCall& call) {
  if (call.math.accumulate == DType::f32) return;
  refuse(call, fmt::format("sums in {}; expected f32", name(call.math.accumulate)));
}

std::int64_t row_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(1, columns));
}

void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_f32_or_bf16(call, tensor); });
}

void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_type(call, tensor, type); });
}

void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_row_major(call, tensor); });
}

const OpImplementation& implementation_of(OpKind kind) { return find_op(op_files(), kind, "cpu"); }

}  // namespace gpubench::cpu

#include "reference/cpu/kernel.h"

#include <fmt/core.h>

#include <algorithm>

#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

const char* vector_units() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(GPUBENCH_SANITIZED)
  // The same question that the loader answers for the clones.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "avx512";
  }
  return __builtin_cpu_supports("avx2") ? "avx2" : "x86_64";
#else
  return "generic";
#endif
}

}  // namespace

void refuse(const OpCall& call, const std::string& why) {
  throw Unsupported(fmt::format("cpu {} '{}': {}", call.kind.name, call.label, why));
}

void expect_row_major(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.is_row_major(tensor.shape)) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected row_major", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

std::string own_implementation() { return std::string("gpubench:") + vector_units(); }

RowView rows_of(const OpCall& call, const TensorSpec& tensor) {
  if (const std::optional<RowView> view = row_view(tensor)) return *view;
  refuse(call, fmt::format("tensor {} has layout {}; expected a contiguous last axis and evenly spaced rows",
                           tensor.to_string(), tensor.layout.to_string(tensor.shape)));
}

void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.dtype == DType::f32 || tensor.dtype == DType::bf16) return;
  refuse(call, fmt::format("tensor {}: the cpu backend has f32 and bf16 here, not {}", tensor.to_string(),
                           name(tensor.dtype)));
}

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type) {
  if (tensor.dtype == type) return;
  refuse(call, fmt::format("tensor {}: expected {} here, not {}", tensor.to_string(), name(type), name(tensor.dtype)));
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

}  // namespace gpubench::cpu

#include "reference/cpu/kernel.h"

#include <fmt/core.h>

#include "reference/cpu/vector_clones.h"

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

}  // namespace gpubench::cpu

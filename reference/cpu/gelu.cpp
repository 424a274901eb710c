#include "reference/cpu/gelu.h"

#include "reference/cpu/gelu_avx512.h"
#include "reference/cpu/pointwise.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_clones.h"
#include "reference/cpu/vector_math.h"
#include "reference/ops/gelu.h"

namespace gpubench::cpu {
namespace {

GPUBENCH_VECTOR_CLONES
void gelu_tanh_block(const float* x, const float* /*none*/, float /*none*/, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = vector_gelu_tanh(x[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_block(const float* x, const float* /*none*/, float /*none*/, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = vector_gelu_erf(x[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_tanh_backward_block(const float* x, const float* dy, float /*none*/, std::int64_t count, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_tanh_derivative(x[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_backward_block(const float* x, const float* dy, float /*none*/, std::int64_t count, float* dx) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_erf_derivative(x[i]);
}

bool is_tanh(const OpCall& call) { return call.attributes.as<Gelu>().form == GeluForm::tanh; }

PointwiseKernel forward_kernel(const OpCall& call) {
  if (!is_tanh(call)) return {gelu_erf_block};
  if (avx512::available()) return {avx512::gelu_tanh, avx512::stream_gelu_tanh};
  return {gelu_tanh_block};
}

}  // namespace

Plan plan_gelu_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_pointwise(call, tensors, context, forward_kernel(call));
}

Plan plan_gelu_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_pointwise(call, tensors, context, {is_tanh(call) ? gelu_tanh_backward_block : gelu_erf_backward_block});
}

}  // namespace gpubench::cpu

// The arithmetic of each pointwise op on a block of f32, and its plan. pointwise.h does the rest.
#include <cstring>

#include "reference/cpu/gelu_avx512.h"
#include "reference/cpu/plans.h"
#include "reference/cpu/pointwise.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_clones.h"
#include "reference/cpu/vector_math.h"
#include "reference/ops/pointwise.h"

namespace gpubench::cpu {
namespace {

GPUBENCH_VECTOR_CLONES
void triad_block(const float* const* x, float factor, std::int64_t count, float* const* y) {
  const float *b = x[0], *c = x[1];
  float* sum = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] = b[i] + factor * c[i];
}

GPUBENCH_VECTOR_CLONES
void scale_block(const float* const* x, float factor, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * from[i];
}

GPUBENCH_VECTOR_CLONES
void add_elements(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *a = x[0], *b = x[1];
  float* sum = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

// The rounding happens where the sink narrows.
void cast_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  std::memcpy(y[0], x[0], static_cast<std::size_t>(count) * sizeof(float));
}

GPUBENCH_VECTOR_CLONES
void gelu_tanh_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = vector_gelu_tanh(from[i]);
}

void gelu_tanh_block_avx512(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  avx512::gelu_tanh(x[0], nullptr, 0.0F, count, y[0]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = vector_gelu_erf(from[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_tanh_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_tanh_derivative(from[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_erf_derivative(from[i]);
}

GPUBENCH_VECTOR_CLONES
void swiglu_forward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *gate = x[0], *up = x[1];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = gate[i] / (1.0F + vector_exp(-gate[i])) * up[i];
}

GPUBENCH_VECTOR_CLONES
void swiglu_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *gate = x[0], *up = x[1], *dy = x[2];
  float *dgate = y[0], *dup = y[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float e = vector_exp(-gate[i]);
    const float s = 1.0F / (1.0F + e);
    // 1 - s would cancel; e overflows where s is 0.
    const float rest = e > 1e30F ? 1.0F : e * s;
    const float gradient = dy[i];
    dgate[i] = gradient * up[i] * (s * (1.0F + gate[i] * rest));
    dup[i] = gradient * (gate[i] * s);
  }
}

PointwiseKernel kernel_of(const OpCall& call) {
  const auto gelu_is_tanh = [&call] { return call.attributes.as<Gelu>().form == GeluForm::tanh; };
  if (call.kind == add_kind) return {add_elements};
  if (call.kind == cast_kind) return {cast_block};
  if (call.kind == gelu_backward_kind) return {gelu_is_tanh() ? gelu_tanh_backward_block : gelu_erf_backward_block};
  if (call.kind == gelu_forward_kind) {
    if (!gelu_is_tanh()) return {gelu_erf_block};
    if (!avx512::available()) return {gelu_tanh_block};
    return {gelu_tanh_block_avx512, avx512::stream_gelu_tanh};
  }
  if (call.kind == scale_kind) return {scale_block};
  if (call.kind == swiglu_backward_kind) return {swiglu_backward_block};
  if (call.kind == swiglu_forward_kind) return {swiglu_forward_block};
  if (call.kind == triad_kind) return {triad_block, stream_triad};
  refuse(call, "there is no kernel for it");
}

}  // namespace

Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  double factor = 0.0;
  if (call.kind == scale_kind) factor = call.attributes.as<Scale>().factor;
  if (call.kind == triad_kind) factor = call.attributes.as<Triad>().factor;
  return pointwise_plan(call, tensors, context, kernel_of(call), static_cast<float>(factor));
}

}  // namespace gpubench::cpu

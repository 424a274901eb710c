// GELU's tanh form written for AVX-512, fast enough to run at the speed of memory. To be called only where available().
#pragma once

#include <cstdint>

namespace gpubench::cpu::avx512 {

/// y[i] = gelu(x[i]), i < count; within the same bounds as vector_gelu_tanh(). A PointwiseFunction.
void gelu_tanh(const float* x, const float* none, float unused, std::int64_t count, float* y);
/// The same bits, stored around the caches. Call stream_fence() when done.
void stream_gelu_tanh(const float* x, const float* none, float unused, std::int64_t count, float* y);

}  // namespace gpubench::cpu::avx512

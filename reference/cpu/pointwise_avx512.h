// Activations fast enough, in f32, to run at the speed of memory.
#pragma once

#include <cstdint>

namespace gpubench::cpu::avx512 {

/// y[i] from a[i], and from b[i] where the op has two inputs, i < count; `none` is ignored. Within the bounds of the
/// portable function, which differs by a few units of the last place.
using PointwiseFunction = void(const float* a, const float* b, float none, std::int64_t count, float* y);

struct PointwiseKernel {
  PointwiseFunction* plain;
  PointwiseFunction* streaming;  ///< the same bits, stored around the caches; call stream_fence() when done
};

/// Call them only where available() (vector_avx512.h). Of (x), (x, dy), (x), (x, dy) and (gate, up).
extern const PointwiseKernel gelu_tanh, gelu_tanh_backward, silu, silu_backward, swiglu;

}  // namespace gpubench::cpu::avx512

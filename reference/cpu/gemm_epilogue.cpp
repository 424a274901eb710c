#include "reference/cpu/gemm_epilogue.h"

#include <algorithm>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace {

// What is worth a thread: about as long as waking it takes.
constexpr std::int64_t elements_per_grain = 4096;

template <class T>
T* row_of(const MatrixRows& rows, std::int64_t m, std::int64_t row) {
  return reinterpret_cast<T*>(rows.data) + row / m * rows.batch_stride + row % m * rows.row_stride;
}

// `sums` may alias `pre`, and c is read before it is written: so no __restrict, but an assertion that iterations are
// independent, which aliasing element by element keeps.
template <class T, GeluForm form>
[[gnu::always_inline]] inline void forward_rows(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* sums = row_of<float>(e.sums, e.m, row);
    T* pre = row_of<T>(e.pre, e.m, row);
    T* c = row_of<T>(e.c, e.m, row);
    const float beta = e.beta;
    const std::int64_t n = e.n;
    if (beta != 0.0F) {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < n; ++j) {
        const float z = sums[j] + beta * widen(c[j]);
        pre[j] = narrow<T>(z);
        c[j] = narrow<T>(form == GeluForm::tanh ? vector_gelu_tanh(z) : vector_gelu_erf(z));
      }
    } else {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < n; ++j) {
        const float z = sums[j];
        pre[j] = narrow<T>(z);
        c[j] = narrow<T>(form == GeluForm::tanh ? vector_gelu_tanh(z) : vector_gelu_erf(z));
      }
    }
  }
}

template <class P, class T, GeluForm form>
[[gnu::always_inline]] inline void gradient_rows(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* sums = row_of<float>(e.sums, e.m, row);
    const P* pre = row_of<P>(e.pre, e.m, row);
    T* c = row_of<T>(e.c, e.m, row);
    const std::int64_t n = e.n;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) {
      const float x = widen(pre[j]);
      c[j] = narrow<T>(sums[j] *
                       (form == GeluForm::tanh ? vector_gelu_tanh_derivative(x) : vector_gelu_erf_derivative(x)));
    }
  }
}

GPUBENCH_VECTOR_CLONES void forward_tanh_f32(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  forward_rows<float, GeluForm::tanh>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void forward_erf_f32(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  forward_rows<float, GeluForm::erf>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void forward_tanh_bf16(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  forward_rows<bf16, GeluForm::tanh>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void forward_erf_bf16(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  forward_rows<bf16, GeluForm::erf>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void gradient_tanh_f32(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  e.pre.dtype == DType::f32 ? gradient_rows<float, float, GeluForm::tanh>(e, begin, end)
                            : gradient_rows<bf16, float, GeluForm::tanh>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void gradient_erf_f32(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  e.pre.dtype == DType::f32 ? gradient_rows<float, float, GeluForm::erf>(e, begin, end)
                            : gradient_rows<bf16, float, GeluForm::erf>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void gradient_tanh_bf16(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  e.pre.dtype == DType::f32 ? gradient_rows<float, bf16, GeluForm::tanh>(e, begin, end)
                            : gradient_rows<bf16, bf16, GeluForm::tanh>(e, begin, end);
}
GPUBENCH_VECTOR_CLONES void gradient_erf_bf16(const GeluEpilogue& e, std::int64_t begin, std::int64_t end) {
  e.pre.dtype == DType::f32 ? gradient_rows<float, bf16, GeluForm::erf>(e, begin, end)
                            : gradient_rows<bf16, bf16, GeluForm::erf>(e, begin, end);
}

template <class Rows>
void over_rows(int threads, const GeluEpilogue& e, Rows* rows) {
  const std::int64_t grain = std::max<std::int64_t>(1, elements_per_grain / std::max<std::int64_t>(e.n, 1));
  parallel_chunks(threads, e.batch * e.m, grain,
                  [&e, rows](std::int64_t begin, std::int64_t end) { rows(e, begin, end); });
}

}  // namespace

void run_gelu_epilogue(int threads, const GeluEpilogue& e) {
  const bool tanh = e.form == GeluForm::tanh;
  if (e.c.dtype == DType::f32) {
    over_rows(threads, e, tanh ? forward_tanh_f32 : forward_erf_f32);
  } else {
    over_rows(threads, e, tanh ? forward_tanh_bf16 : forward_erf_bf16);
  }
}

void run_gelu_gradient_epilogue(int threads, const GeluEpilogue& e) {
  const bool tanh = e.form == GeluForm::tanh;
  if (e.c.dtype == DType::f32) {
    over_rows(threads, e, tanh ? gradient_tanh_f32 : gradient_erf_f32);
  } else {
    over_rows(threads, e, tanh ? gradient_tanh_bf16 : gradient_erf_bf16);
  }
}

}  // namespace gpubench::cpu

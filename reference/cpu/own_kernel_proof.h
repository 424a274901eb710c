// Kernels of our own for one instruction set, compared with the same arithmetic in portable code.
//
// Each function runs the kernel on a few hundred numbers, chosen so that the result is exact wherever it can be. The
// caller must survive a crash: isa_proof.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reference/cpu/attention.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/pointwise_avx512.h"

namespace gpubench::cpu {

/// The kernels of one instruction set, whose name is as the kernel prints it.
struct OwnKernels {
  std::string isa;
  bool (*announced)();  ///< by CPUID, and by the system where it must agree
  bool (*hold)();       ///< runs them all; false where one is wrong
};

/// "avx512" (with what Highway compiles for it), "avx512_bf16", "amx_bf16".
[[nodiscard]] std::span<const OwnKernels> own_kernels();

/// What GPUBENCH_VECTOR_CLONES compiles: the loader has chosen one of three levels for it, and nothing can choose
/// again. And what Highway compiles, at the level that it uses now.
[[nodiscard]] bool vector_clones_hold();

/// The passes of norm_passes.h.
struct NormPasses {
  float (*sum)(const float* x, std::int64_t count, const float* ahead);
  float (*add)(const float* x, const float* r, std::int64_t count, float* sum, float* streamed, const float* ahead_x,
               const float* ahead_r);
  float (*squared_deviations)(const float* x, float mean, std::int64_t count, const float* ahead);
  void (*stream_normalized)(const float* x, const float* gamma, const float* beta, float mean, float rstd,
                            std::int64_t count, float* y);
};

[[nodiscard]] bool pointwise_holds(avx512::PointwiseFunction* kernel, float (*portable)(float a, float b));
/// Those of softmax.h.
[[nodiscard]] bool exponentials_hold(float (*exp)(const float* x, float largest, std::int64_t count, float* y),
                                     void (*softmax)(const float* x, float shift, float factor, std::int64_t count,
                                                     float* y));
[[nodiscard]] bool narrowing_holds(void (*narrow_lines)(const float* from, std::int64_t lines, bf16* to,
                                                        bool streaming));
[[nodiscard]] bool norm_passes_hold(const NormPasses& passes);
[[nodiscard]] bool streaming_holds(void (*copy_lines)(std::byte* to, const std::byte* from, std::size_t lines),
                                   void (*triad_lines)(const float* b, const float* c, float factor, std::int64_t count,
                                                       float* y));
[[nodiscard]] bool softmax_holds(void (*wide)(const ScoreBlock& block, Rows<float> weights),
                                 void (*rounding)(const ScoreBlock& block, Rows<bf16> weights));
[[nodiscard]] bool product_holds(void (*multiply)(const BlockExtents& extents, Rows<const bf16> a, const bf16* b,
                                                  Rows<float> c, bool accumulate));

}  // namespace gpubench::cpu

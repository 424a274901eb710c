// Own kernels, compared with plain C++ on a few hundred numbers that give exact results where possible. The caller must
// survive a crash: isa_proof.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "reference/cpu/attention.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {

/// Kernels of one instruction set, with the kernel's (Linux) name for it.
struct OwnKernels {
  std::string isa;
  bool (*announced)();  ///< by CPUID and, if needed, the system's permission
  bool (*hold)();       ///< runs all of them; false if one is wrong
};

/// "avx2" and "avx512" (compiled by Highway), "avx512_bf16", "amx_bf16", in this order.
[[nodiscard]] std::span<const OwnKernels> own_kernels();

/// Highway kernels for the current instruction set.
[[nodiscard]] bool vector_kernels_hold();

[[nodiscard]] bool runs_hold(const Runs& runs);
[[nodiscard]] bool pointwise_holds(const PointwiseKernel& kernel, double (*expected)(double x));
[[nodiscard]] bool softmax_holds(void (*in_place)(const ScoreBlock& block));
[[nodiscard]] bool product_holds(void (*multiply)(const BlockExtents& extents, Rows<const bf16> a, const bf16* b,
                                                  Rows<float> c, bool accumulate));
/// For 160 numbers.
[[nodiscard]] bool narrowing_holds(const std::function<void(const float* from, bf16* to)>& narrow);

}  // namespace gpubench::cpu

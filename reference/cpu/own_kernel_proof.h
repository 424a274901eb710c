// Kernels of our own, compared with the same arithmetic in plain C++.
//
// Each function runs kernels on a few hundred numbers, chosen so that the result is exact wherever it can be. The
// caller must survive a crash: isa_proof.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "reference/cpu/attention.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {

/// The kernels of one instruction set, whose name is as the kernel prints it.
struct OwnKernels {
  std::string isa;
  bool (*announced)();  ///< by CPUID, and by the system where it must agree
  bool (*hold)();       ///< runs them all; false where one is wrong
};

/// "avx2" and "avx512", for which Highway compiles kernels, in this order; "avx512_bf16", "amx_bf16".
[[nodiscard]] std::span<const OwnKernels> own_kernels();

/// Kernels in Highway, for the instruction set that it uses now.
[[nodiscard]] bool vector_kernels_hold();

[[nodiscard]] bool runs_hold(const Runs& runs);
[[nodiscard]] bool pointwise_holds(const PointwiseKernel& kernel, double (*expected)(double x));
[[nodiscard]] bool softmax_holds(void (*in_place)(const ScoreBlock& block));
[[nodiscard]] bool product_holds(void (*multiply)(const BlockExtents& extents, Rows<const bf16> a, const bf16* b,
                                                  Rows<float> c, bool accumulate));
/// Of 160 numbers.
[[nodiscard]] bool narrowing_holds(const std::function<void(const float* from, bf16* to)>& narrow);

}  // namespace gpubench::cpu

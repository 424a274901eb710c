// The instruction sets that Highway compiles kernels for: SSE4, AVX2 and AVX-512 (AVX3) on x86, NEON on arm64. Include
// it before Highway. Others cost compile time and bring these kernels nothing.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
// SSSE3, SSE2, and all above AVX3: by their bits, since not every version has the names.
#define HWY_DISABLED_TARGETS ((1LL << 12) | (1LL << 13) | (1LL << 14) | 0xFFLL)
#elif defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

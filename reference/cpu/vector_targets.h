// The instruction sets that Highway compiles kernels for: SSE4, AVX2 and AVX-512 (AVX3) on x86, NEON on arm64. Include
// it before Highway. Others cost compile time and bring these kernels nothing.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
// SSSE3, SSE2, and all above AVX3: by their bits, since not every version has the names.
#define HWY_DISABLED_TARGETS ((1LL << 12) | (1LL << 13) | (1LL << 14) | 0xFFLL)
#elif defined(__aarch64__)
#define HWY_COMPILE_ONLY_STATIC  // with and without AES would be two
// SVE, whose vectors have no size that a compiler knows, and NEON_BF16: by their bits, which differ by version.
#define HWY_DISABLED_TARGETS ((1LL << 28) - (1LL << 16))
#endif

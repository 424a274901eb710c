// Highway's targets: SSE4, AVX2 and AVX-512 (AVX3) on x86, NEON on arm64. Include before Highway. Others take compile
// time without a gain here.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
// SSSE3, SSE2, and all above AVX3; as bits, since some versions lack the names.
#define HWY_DISABLED_TARGETS ((1LL << 12) | (1LL << 13) | (1LL << 14) | 0xFFLL)
#elif defined(__aarch64__)
#define HWY_COMPILE_ONLY_STATIC  // else two targets: with and without AES
// SVE, whose vectors have no compile-time size, and NEON_BF16; as bits, which differ by version.
#define HWY_DISABLED_TARGETS ((1LL << 28) - (1LL << 16))
#endif

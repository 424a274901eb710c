// What kernels are written with, beyond CUDA's own language: shared memory, accesses to global memory, launches.
//
// The same sources are compiled twice: by nvcc for GPUs, and by g++ for tests/reference/cuda/emulation, which supplies
// CUDA's names itself and watches what the kernels do. So that it can, kernels keep three rules:
//   - shared memory comes from shared_storage<T>() and consists of Shared<...> cells;
//   - global memory is read and written through memory.cuh;
//   - a kernel takes one plain struct and is started by launch().
#pragma once

#include <cstdint>

#include "reference/cuda/kernels/launch.h"

#if !defined(__CUDACC__) && !defined(GPUBENCH_EMULATED_DEVICE)
#error "kernels are compiled by nvcc, or by g++ within tests/reference/cuda/emulation"
#endif

namespace gpubench::cuda {

/// How many blocks of how many threads. Kernels walk on by gridDim where there is more work than blocks.
struct Grid {
  std::int64_t blocks = 1;
  int threads = 1;  ///< a multiple of the warp wherever the kernel has barriers or shuffles
};

/// The widest single access of a thread.
struct alignas(16) Word {
  std::uint32_t x, y, z, w;
};

inline constexpr int warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xFFFFFFFFU;

#ifdef __CUDACC__

/// A cell of shared memory; under emulation it knows who wrote it and who may read it.
template <class T>
using Shared = T;

/// The block's one object of this type in shared memory, uninitialized. One type per kernel.
template <class T>
__device__ __forceinline__ T& shared_storage() {
  __shared__ T storage;
  return storage;
}

/// Told of every access to global memory; only the emulation listens.
__device__ __forceinline__ void observe_read(const void* /*from*/, int /*bytes*/, int /*alignment*/) {}
__device__ __forceinline__ void observe_write(void* /*to*/, int /*bytes*/, int /*alignment*/) {}

/// The address, known to be global memory's: read from a table, the compiler would have to allow for shared memory too.
template <class T>
__device__ __forceinline__ T* in_global(T* address) {
  __builtin_assume(__isGlobal(address));
  return address;
}

__device__ __forceinline__ int atomic_exchange(int* cell, int value) { return atomicExch(cell, value); }
__device__ __forceinline__ int atomic_add(int* cell, int value) { return atomicAdd(cell, value); }

/// The upper half of the product.
__device__ __forceinline__ std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) { return __umul64hi(a, b); }

/// exp within 2 + 1.17 |x| ulps, and a / b within 2 ulps for |b| < 2^126 (0 beyond): CUDA's __expf and __fdividef.
__device__ __forceinline__ float fast_exp(float x) { return __expf(x); }
__device__ __forceinline__ float fast_divide(float a, float b) { return __fdividef(a, b); }
/// 2^x within 2 ulps of the correctly rounded one (PTX ISA, ex2.approx.ftz.f32); 0 below the smallest normal number.
__device__ __forceinline__ float fast_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
/// exp, erf and tanh within 2 ulps.
__device__ __forceinline__ float full_exp(float x) { return expf(x); }
__device__ __forceinline__ float full_erf(float x) { return erff(x); }
__device__ __forceinline__ float full_tanh(float x) { return tanhf(x); }
/// In f64 there is but one of each: exp within 1 ulp, erf within 2, and the quotient rounded once.
__device__ __forceinline__ double fast_exp(double x) { return exp(x); }
__device__ __forceinline__ double fast_divide(double a, double b) { return a / b; }
__device__ __forceinline__ double full_exp(double x) { return exp(x); }
__device__ __forceinline__ double full_erf(double x) { return erf(x); }

/// Writes the value; 16 bytes at a time where it is aligned so. Told to nvcc as an instruction: it takes the copy of a
/// struct apart into its elements, and puts them together again in some kernels only (13.0 stored packs of bf16 by
/// two bytes in cross_entropy's backward).
template <class T>
__device__ __forceinline__ void write_whole(T* to, const T& value) {
  if constexpr (alignof(T) == 16) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / sizeof(uint4)); ++i) {
      uint4 words;
      memcpy(&words, reinterpret_cast<const char*>(&value) + i * sizeof(uint4), sizeof(uint4));
      asm volatile(
          "st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(reinterpret_cast<uint4*>(to) + i)),
          "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
          : "memory");
    }
  } else {
    *in_global(to) = value;
  }
}

inline std::int64_t max_blocks_of_grid() { return 0x7FFFFFFF; }

/// Starts the kernel in the stream. An empty grid starts nothing. What goes wrong is told by cudaGetLastError().
template <class Args>
void launch(void (*kernel)(Args), Grid grid, cudaStream_t stream, const Args& args) {
  if (grid.blocks <= 0) return;
  kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads), 0, stream>>>(args);
}

#endif

/// Blocks for `work` units at `per_block` units each, no more than a grid may have: the kernel walks on.
[[nodiscard]] inline std::int64_t blocks_for(std::int64_t work, std::int64_t per_block) {
  const std::int64_t wanted = (work + per_block - 1) / per_block, most = max_blocks_of_grid();
  return wanted < most ? wanted : most;
}

}  // namespace gpubench::cuda

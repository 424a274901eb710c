// Device primitives beyond CUDA C++: shared memory, global memory accesses, launches.
//
// nvcc compiles kernels for GPUs, and g++ for tests/reference/cuda/emulation, which defines CUDA's names and checks
// accesses. Hence three rules:
// - shared memory comes from shared_storage<T>() and consists of Shared<...> cells;
// - global memory is read and written through memory.cuh;
// - a kernel takes one plain struct and is started by launch().
#pragma once

#include <cstdint>

#include "reference/cuda/kernels/launch.h"

#if !defined(__CUDACC__) && !defined(GPUBENCH_EMULATED_DEVICE)
#error "kernels are compiled by nvcc, or by g++ within tests/reference/cuda/emulation"
#endif

namespace gpubench::cuda {

/// Kernels loop with stride gridDim if there is more work than blocks.
struct Grid {
  std::int64_t blocks = 1;
  int threads = 1;  ///< a multiple of the warp size if the kernel has barriers or shuffles
};

struct alignas(16) Word {
  std::uint32_t x, y, z, w;
};

inline constexpr int warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xFFFFFFFFU;

#ifdef __CUDACC__

/// A cell of shared memory; the emulation records its writers and readers.
template <class T>
using Shared = T;

/// The block's shared object of this type, uninitialized. One type per kernel.
template <class T>
__device__ __forceinline__ T& shared_storage() {
  __shared__ T storage;
  return storage;
}

/// Hooks for the emulation, which observes every access to global memory.
__device__ __forceinline__ void observe_read(const void* /*from*/, int /*bytes*/, int /*alignment*/) {}
__device__ __forceinline__ void observe_write(void* /*to*/, int /*bytes*/, int /*alignment*/) {}

/// The address, assumed to be in global memory: nvcc cannot know this for addresses read from a table.
template <class T>
__device__ __forceinline__ T* in_global(T* address) {
  __builtin_assume(__isGlobal(address));
  return address;
}

__device__ __forceinline__ int atomic_exchange(int* cell, int value) { return atomicExch(cell, value); }
__device__ __forceinline__ int atomic_add(int* cell, int value) { return atomicAdd(cell, value); }

__device__ __forceinline__ std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) { return __umul64hi(a, b); }

/// exp within 2 + 1.17 |x| ulps; a / b within 2 ulps for |b| < 2^126, else 0 (CUDA's __expf and __fdividef).
__device__ __forceinline__ float fast_exp(float x) { return __expf(x); }
__device__ __forceinline__ float fast_divide(float a, float b) { return __fdividef(a, b); }
/// 2^x within 2 ulps of the correctly rounded result (PTX ISA, ex2.approx.ftz.f32); 0 below the smallest normal number.
__device__ __forceinline__ float fast_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
/// exp, erf and tanh within 2 ulps.
__device__ __forceinline__ float full_exp(float x) { return expf(x); }
__device__ __forceinline__ float full_erf(float x) { return erff(x); }
__device__ __forceinline__ float full_tanh(float x) { return tanhf(x); }
/// f64 has one version of each: exp within 1 ulp, erf within 2, the quotient correctly rounded.
__device__ __forceinline__ double fast_exp(double x) { return exp(x); }
__device__ __forceinline__ double fast_divide(double a, double b) { return a / b; }
__device__ __forceinline__ double full_exp(double x) { return exp(x); }
__device__ __forceinline__ double full_erf(double x) { return erf(x); }

/// Writes the value, 16 bytes at a time if it is aligned so. Uses an instruction, since nvcc splits struct copies into
/// elements and joins them in some kernels only (13.0 stored packs of bf16 by two bytes in cross_entropy's backward).
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

/// Starts the kernel in the stream; an empty grid starts nothing. Errors are left for cudaGetLastError().
template <class Args>
void launch(void (*kernel)(Args), Grid grid, cudaStream_t stream, const Args& args) {
  if (grid.blocks <= 0) return;
  kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads), 0, stream>>>(args);
}

#endif

/// Blocks for `work` units at `per_block` units each, at most the grid limit: the kernel loops over the rest.
[[nodiscard]] inline std::int64_t blocks_for(std::int64_t work, std::int64_t per_block) {
  const std::int64_t wanted = (work + per_block - 1) / per_block, most = max_blocks_of_grid();
  return wanted < most ? wanted : most;
}

}  // namespace gpubench::cuda

// CUDA for g++: the names that kernel sources expect from nvcc (-include puts this file first).
// device.cuh lists the rules by which all accesses of kernels pass through here.
// Functions with a bounded error in CUDA get an error within that bound, by a hash of the result, which reveals code
// that needs more accuracy.
#pragma once

#define GPUBENCH_EMULATED_DEVICE 1

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <source_location>

#include "reference/cuda/kernels/launch.h"
#include "tests/reference/cuda/emulation/machine.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/cuda/emulation/streams.h"

// The spelling is CUDA's.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace gpubench::cuda::emulation {

struct Dimensions {
  unsigned x = 0, y = 0, z = 0;
};

/// Lane of the running thread in its warp.
[[nodiscard]] int lane();

template <class T>
[[nodiscard]] std::uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
[[nodiscard]] T value_of(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// `value` with an error of at most `ulps` units in the last place.
[[nodiscard]] float within(float ulps, float value);
[[nodiscard]] double within(double ulps, double value);

[[nodiscard]] std::uint16_t bf16_bits(float x);
[[nodiscard]] std::uint16_t f16_bits(float x);
[[nodiscard]] std::uint16_t bf16_bits(double x);
[[nodiscard]] std::uint16_t f16_bits(double x);
/// old + the sum of the 16 products a[k] b[k], added as an H200's tensor cores do for 16-bit numbers.
[[nodiscard]] float tensor_core_sum_of_16(float old, const double* a, const double* b);

/// Too large values become the largest finite number or, unsaturated, NaN (e4m3) or infinity.
[[nodiscard]] std::uint8_t e4m3_bits(float x, bool saturate = true);
[[nodiscard]] std::uint8_t e5m2_bits(float x, bool saturate = true);
[[nodiscard]] float float_of_bf16(std::uint16_t bits);
[[nodiscard]] float float_of_f16(std::uint16_t bits);

}  // namespace gpubench::cuda::emulation

extern gpubench::cuda::emulation::Dimensions threadIdx, blockIdx, blockDim, gridDim;

using Place = std::source_location;

inline void __syncthreads(Place where = Place::current()) { gpubench::cuda::emulation::wait_for_block(where); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU, Place where = Place::current()) {
  gpubench::cuda::emulation::wait_for_warp(mask, where);
}

// A lane outside its section of `width` lanes gets its own value back.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, Place where = Place::current()) {
  namespace e = gpubench::cuda::emulation;
  const int first = e::lane() / width * width;
  return e::value_of<T>(e::shuffle(mask, e::bits_of(value), first + source % width, where));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, Place where = Place::current()) {
  namespace e = gpubench::cuda::emulation;
  const int source = e::lane() ^ lane_mask;
  const bool inside = source < e::lane() / width * width + width;
  return e::value_of<T>(e::shuffle(mask, e::bits_of(value), inside ? source : e::lane(), where));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int delta, int width = 32, Place where = Place::current()) {
  namespace e = gpubench::cuda::emulation;
  const int source = e::lane() + delta;
  const bool inside = source < e::lane() / width * width + width;
  return e::value_of<T>(e::shuffle(mask, e::bits_of(value), inside ? source : e::lane(), where));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int delta, int width = 32, Place where = Place::current()) {
  namespace e = gpubench::cuda::emulation;
  const int source = e::lane() - delta;
  const bool inside = source >= e::lane() / width * width;
  return e::value_of<T>(e::shuffle(mask, e::bits_of(value), inside ? source : e::lane(), where));
}
inline unsigned __ballot_sync(unsigned mask, int predicate, Place where = Place::current()) {
  return gpubench::cuda::emulation::ballot(mask, predicate != 0, where);
}
inline int __popc(unsigned bits) { return std::popcount(bits); }

namespace gpubench::cuda::emulation {

/// PTX's mma.m16n8k16. A lane holds sums in rows lane / 4 and 8 below, columns 2 (lane % 4) and the next. Of a and b it
/// holds two numbers per word; `wide` converts the lower 16 bits.
template <class Wide>
void tensor_core_16x8x16(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], const Wide& wide) {
  const auto pair = [](std::uint32_t low, std::uint32_t high) { return low | static_cast<std::uint64_t>(high) << 32U; };
  double rows[2][16], columns[2][16];
  for (int fourth = 0; fourth < 4; ++fourth) {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t of_row = __shfl_sync(0xFFFFFFFFU, pair(a[i], a[i + 2]), lane() / 4 * 4 + fourth);
      const std::uint64_t of_b = pair(b[0], b[1]);
      const std::uint64_t of_column = __shfl_sync(0xFFFFFFFFU, of_b, (lane() % 4 * 2 + i) * 4 + fourth);
      for (int k = 0; k < 4; ++k) {  // numbers 2 fourth, the next one, and both 8 further on
        const int at = 2 * fourth + k % 2 + k / 2 * 8;
        rows[i][at] = wide(static_cast<std::uint32_t>(of_row >> (16U * static_cast<unsigned>(k))) & 0xFFFFU);
        columns[i][at] = wide(static_cast<std::uint32_t>(of_column >> (16U * static_cast<unsigned>(k))) & 0xFFFFU);
      }
    }
  }
  for (int i = 0; i < 4; ++i) sums[i] = tensor_core_sum_of_16(sums[i], rows[i / 2], columns[i % 2]);
}

}  // namespace gpubench::cuda::emulation

namespace gpubench::cuda {

struct Grid;

/// A cell of shared memory that logs its accesses.
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) = delete;
  operator T() const {  // NOLINT(google-explicit-constructor): reads like a plain T
    emulation::read_cell(log_);
    return value_;
  }
  Shared& operator=(T value) {
    emulation::write_cell(log_);
    value_ = value;
    return *this;
  }
  Shared& operator=(const Shared& other) { return *this = static_cast<T>(other); }
  Shared& operator+=(T value) { return *this = static_cast<T>(*this) + value; }

 private:
  T value_;
  mutable emulation::CellLog log_;
};

template <class T>
T& shared_storage() {
  static const char key = 0;  // its address names the type
  const auto construct = [](void* memory) { new (memory) T; };
  return *static_cast<T*>(emulation::shared_object(&key, sizeof(T), construct));
}

inline void observe_read(const void* from, int bytes, int alignment) {
  emulation::observe_read(from, bytes, alignment);
}
inline void observe_write(void* to, int bytes, int alignment) { emulation::observe_write(to, bytes, alignment); }

template <class T>
T* in_global(T* address) {
  return address;
}

inline int atomic_exchange(int* cell, int value) {
  emulation::observe_atomic(cell, sizeof(int));
  const int old = *cell;
  *cell = value;
  return old;
}
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Product>(a) * b >> 64U);
}
inline int atomic_add(int* cell, int value) {
  emulation::observe_atomic(cell, sizeof(int));
  const int old = *cell;
  *cell = old + value;
  return old;
}

// Bounds: CUDA C++ Programming Guide, "Mathematical Functions".
inline float fast_exp(float x) { return emulation::within(2.0F + 1.17F * std::fabs(x), std::exp(x)); }
inline float fast_divide(float a, float b) {
  if (std::fabs(b) > 0x1p126F) return std::isinf(a) && std::isinf(b) ? std::nanf("") : a * 0.0F;
  return emulation::within(2.0F, a / b);
}
// PTX ISA, ex2: 2 ulps, and the half one of the rounding that they are counted from.
inline float fast_exp2(float x) {
  const float power = emulation::within(2.5F, std::exp2(x));
  return power < 0x1p-126F ? 0.0F : power;
}
inline float full_exp(float x) { return emulation::within(2.0F, std::exp(x)); }
inline float full_erf(float x) { return emulation::within(2.0F, std::erf(x)); }
inline float full_tanh(float x) { return emulation::within(2.0F, std::tanh(x)); }
inline double fast_exp(double x) { return emulation::within(1.0, std::exp(x)); }
inline double fast_divide(double a, double b) { return a / b; }
inline double full_exp(double x) { return emulation::within(1.0, std::exp(x)); }
inline double full_erf(double x) { return emulation::within(2.0, std::erf(x)); }

template <class T>
void write_whole(T* to, const T& value) {
  *to = value;
}

inline std::int64_t max_blocks_of_grid() { return emulation::max_blocks(); }

template <class Launched, class Args>
void launch(void (*kernel)(Args), const Launched& grid, cudaStream_t stream, const Args& args) {
  if (grid.blocks <= 0) return;
  emulation::on_stream(stream,
                       [kernel, grid, args] { emulation::run_grid(grid.blocks, grid.threads, [&] { kernel(args); }); });
}

}  // namespace gpubench::cuda

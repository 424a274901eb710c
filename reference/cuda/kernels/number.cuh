// 16-bit storage types, and conversions rounded once, to nearest even.
#pragma once

#include <cmath>
#include <stdexcept>

#include "reference/cuda/kernels/device.cuh"
#include "reference/cuda/kernels/launch.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#endif

namespace gpubench::cuda {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

/// Compute type: f64 for f64, else f32.
template <class T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};
template <class T>
using Wide = typename WideOf<T>::type;

__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ float widen(float x) { return x; }

#ifdef __CUDACC__
__device__ __forceinline__ float widen(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ __forceinline__ float widen(F16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ __forceinline__ std::uint16_t bf16_bits(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
__device__ __forceinline__ std::uint16_t f16_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ std::uint16_t bf16_bits(double x) { return __bfloat16_as_ushort(__double2bfloat16(x)); }
__device__ __forceinline__ std::uint16_t f16_bits(double x) { return __half_as_ushort(__double2half(x)); }
/// Rounded once; NaN is kept. Too large values become the largest finite number or, unsaturated, NaN (e4m3) or
/// infinity.
__device__ __forceinline__ std::uint8_t e4m3_bits(float x, bool saturate = true) {
  return __nv_cvt_float_to_fp8(x, saturate ? __NV_SATFINITE : __NV_NOSAT, __NV_E4M3);
}
__device__ __forceinline__ std::uint8_t e5m2_bits(float x, bool saturate = true) {
  return __nv_cvt_float_to_fp8(x, saturate ? __NV_SATFINITE : __NV_NOSAT, __NV_E5M2);
}
__device__ __forceinline__ std::uint32_t bits_of_float(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float float_of_bits(std::uint32_t bits) { return __uint_as_float(bits); }
#else
using emulation::bf16_bits;
using emulation::e4m3_bits;
using emulation::e5m2_bits;
using emulation::f16_bits;
inline float widen(Bf16 x) { return emulation::float_of_bf16(x.bits); }
inline float widen(F16 x) { return emulation::float_of_f16(x.bits); }
inline std::uint32_t bits_of_float(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float float_of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
#endif
__device__ __forceinline__ std::uint32_t magnitude_bits(float x) { return bits_of_float(x) & 0x7FFFFFFFU; }

template <class T>
struct Narrowing {
  template <class From>
  static __device__ __forceinline__ T of(From x) {
    return static_cast<T>(x);
  }
};
template <>
struct Narrowing<Bf16> {
  template <class From>
  static __device__ __forceinline__ Bf16 of(From x) {
    return {bf16_bits(x)};
  }
};
template <>
struct Narrowing<F16> {
  template <class From>
  static __device__ __forceinline__ F16 of(From x) {
    return {f16_bits(x)};
  }
};

/// `x` (f32 or f64) rounded once to T.
template <class T, class From>
__device__ __forceinline__ T narrow(From x) {
  return Narrowing<T>::of(x);
}
/// x, rounded to T if `rounds`.
template <class T>
__device__ __forceinline__ Wide<T> rounded_if(bool rounds, Wide<T> x) {
  return rounds ? widen(narrow<T>(x)) : x;
}

template <class T>
struct Type {
  using type = T;
};

/// Calls visit(Type<T>{}) for f32, f16 or bf16.
template <class Visit>
void with_float_type(Element element, const Visit& visit) {
  switch (element) {
    case Element::f32: return visit(Type<float>{});
    case Element::f16: return visit(Type<F16>{});
    case Element::bf16: return visit(Type<Bf16>{});
    default: throw std::logic_error("a kernel's type must be f32, f16 or bf16");
  }
}

template <class Visit>
void with_any_type(Element element, const Visit& visit) {
  if (element == Element::f64) return visit(Type<double>{});
  with_float_type(element, visit);
}

}  // namespace gpubench::cuda

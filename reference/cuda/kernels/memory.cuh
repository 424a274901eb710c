// Access to global memory: single elements, and packs of 16 bytes if everything is aligned.
#pragma once

#include <cstring>
#include <type_traits>

#include "reference/cuda/kernels/device.cuh"

namespace gpubench::cuda {

/// The widest access of a thread.
inline constexpr int pack_bytes = sizeof(Word);

/// Alignment of N adjacent elements. More than 16 bytes take several accesses.
template <class T, int N>
inline constexpr int pack_alignment = sizeof(T) * N < pack_bytes ? sizeof(T) * N : pack_bytes;

template <class T, int N>
struct alignas(pack_alignment<T, N>) Pack {
  T at[N];
};

/// N loaded elements in whole registers, unpacked where they are used. As a Pack, 16-bit elements would take a register
/// each where branches meet, and ptxas would wait for every load before the next.
template <class T, int N>
struct alignas(pack_alignment<T, N>) Loaded {
  static constexpr int bytes = sizeof(T) * N;
  static constexpr bool in_registers = sizeof(T) < sizeof(std::uint32_t) && bytes % sizeof(std::uint32_t) == 0;
  using Unit = std::conditional_t<in_registers, std::uint32_t, T>;
  Unit units[bytes / sizeof(Unit)];

  [[nodiscard]] __device__ __forceinline__ T operator[](int i) const {
    T element;
    memcpy(&element, reinterpret_cast<const char*>(units) + i * sizeof(T), sizeof(T));
    return element;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, N> unpacked() const {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.at[i] = (*this)[i];
    return pack;
  }
};

template <class T, int N>
__device__ __forceinline__ Loaded<T, N> as_loaded(const Pack<T, N>& pack) {
  Loaded<T, N> loaded;
  memcpy(&loaded, &pack, sizeof(loaded));
  return loaded;
}

template <class T>
__device__ __forceinline__ T load(const T* from) {
  observe_read(from, sizeof(T), alignof(T));
  return *in_global(from);
}

template <class T>
__device__ __forceinline__ void store(T* to, T value) {
  observe_write(to, sizeof(T), alignof(T));
  *in_global(to) = value;
}

template <int N, class T>
__device__ __forceinline__ Loaded<T, N> load_pack(const T* from) {
  observe_read(from, sizeof(Loaded<T, N>), alignof(Loaded<T, N>));
  return *reinterpret_cast<const Loaded<T, N>*>(in_global(from));
}

template <int N, class T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, N>& pack) {
  observe_write(to, sizeof(Pack<T, N>), alignof(Pack<T, N>));
  write_whole(reinterpret_cast<Pack<T, N>*>(to), pack);
}

/// The first `count` of N elements; the others are `filler`.
template <int N, class T>
__device__ __forceinline__ Loaded<T, N> load_part(const T* from, std::int64_t count, T filler) {
  if (count >= N) return load_pack<N>(from);
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.at[i] = i < count ? load(from + i) : filler;
  return as_loaded(pack);
}

template <int N, class T>
__device__ __forceinline__ void store_part(T* to, std::int64_t count, const Pack<T, N>& pack) {
  if (count >= N) return store_pack(to, pack);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < count) store(to + i, pack.at[i]);
  }
}

template <class T>
inline constexpr int pack_elements = pack_bytes / static_cast<int>(sizeof(T));

/// Whether packs are aligned at this address and at every multiple of `stride` elements from it.
template <class T>
[[nodiscard]] bool packs_fit(const void* address, std::int64_t rows, std::int64_t stride, int elements) {
  const auto bytes = static_cast<std::uint64_t>(elements) * sizeof(T);
  const std::uint64_t alignment = bytes < pack_bytes ? bytes : pack_bytes;
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) return false;
  return rows <= 1 || static_cast<std::uint64_t>(stride) * sizeof(T) % alignment == 0;
}

/// Start of a pack; computed without division for a single row.
struct PackPlace {
  std::int64_t row, column;
};

__device__ __forceinline__ PackPlace place_of(std::int64_t pack, std::int64_t packs_per_row, std::int64_t rows, int n) {
  if (rows == 1) return {0, pack * n};
  if (pack <= 0xFFFFFFFF && packs_per_row <= 0xFFFFFFFF) {
    const unsigned row = static_cast<unsigned>(pack) / static_cast<unsigned>(packs_per_row);
    return {row, (pack - row * packs_per_row) * n};
  }
  const std::int64_t row = pack / packs_per_row;
  return {row, (pack - row * packs_per_row) * n};
}

}  // namespace gpubench::cuda

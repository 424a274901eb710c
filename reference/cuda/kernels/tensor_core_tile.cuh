// A 128 x 128 tile of products of 16-bit numbers on tensor cores (mma.sync, sm_80 and later): 8 warps with 64 x 32 f32
// sums each. Operands pass through shared memory 32 products deep; the next stage loads during the multiplication.
#pragma once

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {

/// A matrix whose lines run along k: element (i, k) is at i * line_stride + k * k_stride; one stride is 1.
template <class T>
struct Lines {
  const T* data;
  int lines;  // remaining
  std::int64_t line_stride, k_stride;
};

/// sums += a b by a warp: 16 x 16 of a, 16 x 8 of b. Fragments: PTX ISA, "mma.m16n8k16 with floating point type".
template <class T>
__device__ __forceinline__ void multiply_fragments(float (&sums)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2]) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, Bf16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#else
  const auto wide = [](std::uint32_t bits) { return static_cast<double>(widen(T{static_cast<std::uint16_t>(bits)})); };
  emulation::tensor_core_16x8x16(sums, a, b, wide);
#endif
}

inline constexpr int mma_tile = 128, mma_depth = 32, mma_threads = 256;
inline constexpr int mma_line_words = mma_depth / 2 + 4;  // eight lines start in eight different groups of four banks
inline constexpr int mma_rows = 64, mma_columns = 32;     // per warp

/// Lines as words of two numbers that are adjacent along k.
struct MmaMemory {
  alignas(16) Shared<std::uint32_t> a[mma_tile * mma_line_words], b[mma_tile * mma_line_words];
};

/// Word of numbers 2 * pair and 2 * pair + 1 of a line. Groups of four words are permuted every eight lines, for
/// threads that store one pair of eight lines each.
__device__ __forceinline__ int word_of(int line, int pair) {
  return line * mma_line_words + (pair ^ (line / 8 % 4 * 4));
}

/// One thread's share of a tile's lines. `packs`: eight adjacent numbers may be moved at once.
template <class T, bool packs>
struct StagedLines {
  Loaded<T, 8> held[2];

  __device__ __forceinline__ void fetch(const Lines<T>& from, int first, int k) {
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
      const bool along_k = from.k_stride == 1;
      const int line = along_k ? line_along_k(turn) : first_of_eight_lines();
      const int deep = first + (along_k ? pair_along_k() : own_pair()) * 2 + (along_k ? 0 : turn);
      const bool inside = line < from.lines && deep < k;
      const int left = !inside ? 0 : along_k ? k - deep : from.lines - line;
      const T* at = from.data + line * from.line_stride + deep * from.k_stride;
      if constexpr (packs) {
        held[turn] = inside ? load_pack<8>(at) : Loaded<T, 8>{};
      } else {
        Pack<T, 8> pack;
#pragma unroll
        for (int i = 0; i < 8; ++i) pack.at[i] = i < left ? load(at + i) : T{};
        held[turn] = as_loaded(pack);
      }
    }
  }

  __device__ __forceinline__ void put(const Lines<T>& from, Shared<std::uint32_t>* to) const {
    if (from.k_stride == 1) {
#pragma unroll
      for (int turn = 0; turn < 2; ++turn) {
#pragma unroll
        for (int word = 0; word < 4; ++word)
          to[word_of(line_along_k(turn), pair_along_k()) + word] = held[turn].units[word];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t even = held[0].units[i / 2], odd = held[1].units[i / 2];
        to[word_of(first_of_eight_lines(), own_pair()) + i * mma_line_words] =
            i % 2 == 0 ? (even & 0xFFFFU) | odd << 16U : even >> 16U | (odd & 0xFFFF0000U);
      }
    }
  }

 private:
  static __device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }
  // Layout 1: four threads hold a line's 32 numbers.
  static __device__ __forceinline__ int line_along_k(int turn) { return (turn * mma_threads + thread()) / 4; }
  static __device__ __forceinline__ int pair_along_k() { return thread() % 4 * 4; }
  // Layout 2: each thread has one pair of eight lines; a warp has eight pairs of four times eight lines.
  static __device__ __forceinline__ int first_of_eight_lines() { return (thread() % 4 + thread() / 32 % 4 * 4) * 8; }
  static __device__ __forceinline__ int own_pair() { return thread() / 4 % 8 + thread() / 128 * 8; }
};

/// A tile of a b^T summed over k products, stored at c with row stride n. All threads of the block must call it. Warps
/// whose part lies beyond the ends skip the multiplication.
template <bool packs, class T, class C>
__device__ __forceinline__ void multiply_tile_by_mma(const Lines<T>& a, const Lines<T>& b, std::int64_t k, C* c,
                                                     std::int64_t n) {
  auto& memory = shared_storage<MmaMemory>();
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes, lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int row = warp % 2 * mma_rows, column = warp / 2 * mma_columns;
  const int eighth = lane / 4, fourth = lane % 4;
  // Base addresses, from which all fragment offsets are constants: the permutation depends on neither eighth nor
  // fourth.
  const Shared<std::uint32_t>* of_a = memory.a + (row + eighth) * mma_line_words + fourth;
  const Shared<std::uint32_t>* of_b = memory.b + (column + eighth) * mma_line_words + fourth;
  const bool beyond = row >= a.lines || column >= b.lines;
  float sums[mma_rows / 16][mma_columns / 8][4] = {};
  StagedLines<T, packs> next_a, next_b;
  const int depth = static_cast<int>(k);
  next_a.fetch(a, 0, depth);
  next_b.fetch(b, 0, depth);
  for (int first = 0; first < depth; first += mma_depth) {
    next_a.put(a, memory.a);
    next_b.put(b, memory.b);
    __syncthreads();
    next_a.fetch(a, first + mma_depth, depth);
    next_b.fetch(b, first + mma_depth, depth);
#pragma unroll
    for (int pair = 0; !beyond && pair < mma_depth / 2; pair += 8) {
      std::uint32_t right[mma_columns / 8][2];
#pragma unroll
      for (int j = 0; j < mma_columns / 8; ++j) {
        right[j][0] = of_b[word_of(j * 8, pair)];
        right[j][1] = of_b[word_of(j * 8, pair + 4)];
      }
#pragma unroll
      for (int i = 0; i < mma_rows / 16; ++i) {
        std::uint32_t left[4];
#pragma unroll
        for (int part = 0; part < 4; ++part) left[part] = of_a[word_of(i * 16 + part % 2 * 8, pair + part / 2 * 4)];
#pragma unroll
        for (int j = 0; j < mma_columns / 8; ++j) multiply_fragments<T>(sums[i][j], left, right[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < mma_rows / 16; ++i) {
#pragma unroll
    for (int j = 0; j < mma_columns / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int line = row + i * 16 + half * 8 + eighth, at = column + j * 8 + fourth * 2;
        const int left = line < a.lines ? b.lines - at : 0;
        C* to = c + line * n + at;
        const Pack<C, 2> pair{narrow<C>(sums[i][j][2 * half]), narrow<C>(sums[i][j][2 * half + 1])};
        if constexpr (packs) {
          if (left > 0) store_pack(to, pair);
        } else {
          if (left > 0) store(to, pair.at[0]);
          if (left > 1) store(to + 1, pair.at[1]);
        }
      }
    }
  }
}

}  // namespace gpubench::cuda

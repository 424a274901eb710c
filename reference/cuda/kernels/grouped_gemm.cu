// A block per tile of c: on tensor cores for 16 bits, else 64 x 64 elements with 4 x 4 per thread, staged through
// shared memory 16 products deep.
// A block finds its group by adding up the sizes, so the host need not know them. The grid has room for a partial tile
// in every group; surplus blocks return at once.
#include "reference/cuda/kernels/products.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/tensor_core_tile.cuh"

namespace gpubench::cuda {
namespace {

constexpr int tile = 64;
constexpr int depth = 16;
constexpr int threads = 256;
constexpr int per_thread = 4;  // per side
constexpr int sides = tile / per_thread;
static_assert(sides * sides == threads);

template <class W>
struct Tiles {
  Shared<W> a[depth][tile + 1], b[depth][tile + 1];
};

/// `depth` elements of `tile` lines from element `first` on; 0 beyond the ends. Neighbouring threads read neighbours.
template <class T>
__device__ __forceinline__ void load_tile(const Lines<T>& from, std::int64_t first, std::int64_t k,
                                          Shared<Wide<T>> (&to)[depth][tile + 1]) {
#pragma unroll
  for (int turn = 0; turn < tile * depth / threads; ++turn) {
    const int cell = turn * threads + static_cast<int>(threadIdx.x);
    const bool along_k = from.k_stride == 1;
    const int line = along_k ? cell / depth : cell % tile;
    const int deep = along_k ? cell % depth : cell / tile;
    Wide<T> value = 0;
    if (line < from.lines && first + deep < k)
      value = widen(load(from.data + line * from.line_stride + (first + deep) * from.k_stride));
    to[deep][line] = value;
  }
}

/// A tile of a b^T summed over k products, stored at c with row stride n.
template <class T, class C>
__device__ __forceinline__ void multiply_tile(const Lines<T>& a, const Lines<T>& b, std::int64_t k, C* c,
                                              std::int64_t n) {
  using W = Wide<T>;
  auto& tiles = shared_storage<Tiles<W>>();
  const int row = static_cast<int>(threadIdx.x) / sides, column = static_cast<int>(threadIdx.x) % sides;
  W sum[per_thread][per_thread] = {};
  for (std::int64_t first = 0; first < k; first += depth) {
    load_tile(a, first, k, tiles.a);
    load_tile(b, first, k, tiles.b);
    __syncthreads();
#pragma unroll
    for (int deep = 0; deep < depth; ++deep) {
      W left[per_thread], right[per_thread];
#pragma unroll
      for (int i = 0; i < per_thread; ++i) {
        left[i] = tiles.a[deep][row + i * sides];
        right[i] = tiles.b[deep][column + i * sides];
      }
#pragma unroll
      for (int i = 0; i < per_thread; ++i) {
#pragma unroll
        for (int j = 0; j < per_thread; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
#pragma unroll
    for (int j = 0; j < per_thread; ++j) {
      if (row + i * sides < a.lines && column + j * sides < b.lines)
        store(c + (row + i * sides) * n + column + j * sides, narrow<C>(sum[i][j]));
    }
  }
}

struct ByFmas {
  static constexpr int tile = cuda::tile, blocks = 1;
  template <class T, class C>
  static __device__ __forceinline__ void multiply(const Lines<T>& a, const Lines<T>& b, std::int64_t k, C* c,
                                                  std::int64_t n) {
    multiply_tile(a, b, k, c, n);
  }
};
template <bool packs>
struct ByTensorCores {
  static constexpr int tile = mma_tile, blocks = packs ? 2 : 1;
  template <class T, class C>
  static __device__ __forceinline__ void multiply(const Lines<T>& a, const Lines<T>& b, std::int64_t k, C* c,
                                                  std::int64_t n) {
    multiply_tile_by_mma<packs>(a, b, k, c, n);
  }
};
static_assert(mma_threads == threads);

/// Rows of a group; an invalid size is clipped to the available rows.
struct Group {
  std::int64_t index, begin, size;
};
__device__ __forceinline__ Group next_group(const GroupedGemmArgs& args, const Group& last) {
  const std::int64_t begin = last.begin + last.size, left = args.rows - begin;
  const std::int64_t index = last.index + 1;
  if (index >= args.groups) return {args.groups, begin, left};  // rows without a group
  const std::int64_t wanted = load(args.sizes + index);
  return {index, begin, wanted < 0 ? 0 : wanted < left ? wanted : left};
}

template <class By, class T, class C>
__global__ void __launch_bounds__(threads, By::blocks) grouped_forward_kernel(GroupedGemmArgs args) {
  constexpr int tile = By::tile;
  const std::int64_t across = (args.n + tile - 1) / tile;
  std::int64_t down = blockIdx.x / across;
  const std::int64_t column = blockIdx.x % across * tile;
  Group group{-1, 0, 0};
  while (true) {
    group = next_group(args, group);
    const std::int64_t tiles = (group.size + tile - 1) / tile;
    if (down < tiles) break;
    if (group.index == args.groups) return;
    down -= tiles;
  }
  const std::int64_t row = group.begin + down * tile;
  const int rows = static_cast<int>(group.begin + group.size - row), columns = static_cast<int>(args.n - column);
  C* c = static_cast<C*>(args.c) + row * args.n + column;
  const Lines<T> a{static_cast<const T*>(args.a) + row * args.k, rows, args.k, 1};
  const bool none = group.index == args.groups;
  const T* matrix = static_cast<const T*>(args.b) + (none ? 0 : group.index * args.k * args.n);
  const Lines<T> b = args.transpose_b ? Lines<T>{matrix + column * args.k, columns, args.k, 1}
                                      : Lines<T>{matrix + column, columns, 1, args.n};
  By::multiply(a, b, none ? 0 : args.k, c, args.n);
}

template <class By, class T, class C>
__global__ void __launch_bounds__(threads, By::blocks) grouped_weight_kernel(GroupedGemmArgs args) {
  constexpr int tile = By::tile;
  const std::int64_t across = (args.n + tile - 1) / tile, down = (args.k + tile - 1) / tile;
  const std::int64_t index = blockIdx.x / (across * down);
  const std::int64_t row = blockIdx.x / across % down * tile, column = blockIdx.x % across * tile;
  Group group{-1, 0, 0};
  while (group.index < index) group = next_group(args, group);
  const Lines<T> a{static_cast<const T*>(args.a) + group.begin * args.k + row, static_cast<int>(args.k - row), 1,
                   args.k};
  const Lines<T> b{static_cast<const T*>(args.b) + group.begin * args.n + column, static_cast<int>(args.n - column), 1,
                   args.n};
  By::multiply(a, b, group.size, static_cast<C*>(args.c) + (index * args.k + row) * args.n + column, args.n);
}

template <class LaunchWith>
void with_kernel(const GroupedGemmArgs& args, const LaunchWith& launch_with) {
  with_any_type(args.data, [&](auto type) {
    const auto with_result = [&](auto by) {
      if (args.result == args.data) return launch_with(by, type, type);
      if (args.data == Element::f64 || args.result != Element::f32)
        throw std::logic_error("grouped_gemm: the result must have the operands' type or f32");
      launch_with(by, type, Type<float>{});
    };
    if constexpr (sizeof(typename decltype(type)::type) == 2) {
      bool packs = args.k % 8 == 0 && args.n % 8 == 0;
      for (const void* data : {args.a, args.b, static_cast<const void*>(args.c)})
        packs = packs && reinterpret_cast<std::uintptr_t>(data) % pack_bytes == 0;
      if (packs) return with_result(ByTensorCores<true>{});
      with_result(ByTensorCores<false>{});
    } else {
      with_result(ByFmas{});
    }
  });
}

}  // namespace

void launch_grouped_gemm(const GroupedGemmArgs& args, cudaStream_t stream) {
  with_kernel(args, [&](auto by, auto type, auto result) {
    const std::int64_t across = (args.n + by.tile - 1) / by.tile;
    const std::int64_t down = args.rows / by.tile + args.groups + 1;  // each group may end with a partial tile
    launch(grouped_forward_kernel<decltype(by), typename decltype(type)::type, typename decltype(result)::type>,
           Grid{across * down, threads}, stream, args);
  });
}

void launch_grouped_gemm_backward_weight(const GroupedGemmArgs& args, cudaStream_t stream) {
  with_kernel(args, [&](auto by, auto type, auto result) {
    const std::int64_t across = (args.n + by.tile - 1) / by.tile, down = (args.k + by.tile - 1) / by.tile;
    launch(grouped_weight_kernel<decltype(by), typename decltype(type)::type, typename decltype(result)::type>,
           Grid{across * down * args.groups, threads}, stream, args);
  });
}

}  // namespace gpubench::cuda

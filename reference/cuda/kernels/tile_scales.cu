// 16 bytes of a tile hold four scales each of four rows that are 32 apart: a thread's share; a warp has a tile. If rows
// allow 16-byte loads, it has four adjacent tiles.
#include "reference/cuda/kernels/products.h"

#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int rows_per_thread = 4;
constexpr int tile_rows = warp_lanes * rows_per_thread;
constexpr int tile_columns = 4;

/// Tiles per row of tiles, and warps with work.
struct TileGrid {
  std::int64_t across, warps;
};
template <int tiles>
__host__ __device__ __forceinline__ TileGrid grid_of(const ScaleTiles& of) {
  const std::int64_t across = (of.columns + tile_columns - 1) / tile_columns;
  return {across, (of.rows + tile_rows - 1) / tile_rows * (across / tiles)};
}

/// Scales of a row from a column on, four per number, the first in the lowest byte; 0 beyond the end.
template <int tiles>
__device__ __forceinline__ Loaded<std::uint32_t, tiles> scales_at(const ScaleTiles& of, std::int64_t row,
                                                                  std::int64_t column) {
  Pack<std::uint32_t, tiles> numbers{};
  if (row >= of.rows) return as_loaded(numbers);
  const std::uint8_t* first = of.scales + row * of.columns + column;
  if constexpr (tiles > 1) {
    return load_pack<tiles>(reinterpret_cast<const std::uint32_t*>(first));
  } else {
#pragma unroll
    for (int i = 0; i < tile_columns; ++i) {
      if (column + i < of.columns) numbers.at[0] |= static_cast<std::uint32_t>(load(first + i)) << (8 * i);
    }
    return as_loaded(numbers);
  }
}

template <int tiles>
__global__ void __launch_bounds__(threads) tile_scales_kernel(TileScalesArgs args) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (thread == 0 && args.factors != nullptr) {
    store(args.factors, args.alpha * load(args.scale_a) * load(args.scale_b));
    store(args.factors + 1, args.beta);
  }
  const std::int64_t of_a = grid_of<tiles>(args.a).warps;
  const bool is_a = thread / warp_lanes < of_a;
  const ScaleTiles of = is_a ? args.a : args.b;
  const TileGrid grid = grid_of<tiles>(of);
  const std::int64_t warp = thread / warp_lanes - (is_a ? 0 : of_a);
  if (warp >= grid.warps) return;
  const auto lane = static_cast<int>(thread % warp_lanes);
  const std::int64_t down = warp / (grid.across / tiles);
  const std::int64_t right = warp % (grid.across / tiles) * tiles;
  Loaded<std::uint32_t, tiles> rows[rows_per_thread];
#pragma unroll
  for (int i = 0; i < rows_per_thread; ++i) {
    rows[i] = scales_at<tiles>(of, down * tile_rows + i * warp_lanes + lane, right * tile_columns);
  }
  auto* to = reinterpret_cast<std::uint32_t*>(of.tiles) + (down * grid.across + right) * (tile_rows * tile_columns / 4);
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    Pack<std::uint32_t, rows_per_thread> out;
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) out.at[i] = rows[i][tile];
    store_pack(to + (tile * warp_lanes + lane) * rows_per_thread, out);
  }
}

bool has_wide_rows(const ScaleTiles& of) {
  return of.columns % pack_bytes == 0 && packs_fit<std::uint8_t>(of.scales, of.rows, of.columns, pack_bytes);
}

template <int tiles>
void launch_tiles(const TileScalesArgs& args, cudaStream_t stream) {
  const std::int64_t warps = grid_of<tiles>(args.a).warps + grid_of<tiles>(args.b).warps;
  launch(tile_scales_kernel<tiles>, Grid{blocks_for(warps * warp_lanes, threads), threads}, stream, args);
}

}  // namespace

void launch_tile_scales(const TileScalesArgs& args, cudaStream_t stream) {
  if (has_wide_rows(args.a) && has_wide_rows(args.b)) return launch_tiles<4>(args, stream);
  launch_tiles<1>(args, stream);
}

}  // namespace gpubench::cuda

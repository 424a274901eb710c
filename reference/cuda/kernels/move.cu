// If both sides have the same fastest axis, threads move packs of 16 bytes along it. Otherwise a tile goes through
// shared memory, so that reads and writes both follow the fastest axis of their side; 2-byte elements go in pairs.
#include "reference/cuda/kernels/elements.h"

#include <algorithm>
#include <stdexcept>

#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;
constexpr int warps = threads / warp_lanes;
constexpr int tile = 32;       // elements or pairs per side
constexpr int pair_tile = 64;  // elements

using Chunk16 = Pack<std::uint32_t, 4>;

struct Places {
  std::int64_t from, to;
};

/// Offsets of an index that counts through the first `axes` axes.
__device__ __forceinline__ Places places_of(const MoveArgs& args, int axes, std::int64_t index) {
  Places places{0, 0};
  for (int a = axes - 1; a > 0; --a) {
    const std::int64_t extent = args.axis[a].extent;
    const std::int64_t outer = index <= 0xFFFFFFFF && extent <= 0xFFFFFFFF
                                   ? static_cast<unsigned>(index) / static_cast<unsigned>(extent)
                                   : index / extent;
    const std::int64_t at = index - outer * extent;
    places.from += at * args.axis[a].from;
    places.to += at * args.axis[a].to;
    index = outer;
  }
  if (axes > 0) {
    places.from += index * args.axis[0].from;
    places.to += index * args.axis[0].to;
  }
  return places;
}

__device__ __forceinline__ std::int64_t elements_of(const MoveArgs& args) {
  std::int64_t elements = 1;
  for (int a = 0; a < args.axes; ++a) elements *= args.axis[a].extent;
  return elements;
}

/// In chunks; any strides.
template <class Chunk>
__global__ void __launch_bounds__(threads) rows_kernel(MoveArgs args) {
  const std::int64_t chunks = elements_of(args);
  const auto* from = static_cast<const Chunk*>(args.from);
  auto* to = static_cast<Chunk*>(args.to);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads * in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < chunks;
       first += step) {
    Chunk loaded[in_flight] = {};
    std::int64_t places[in_flight] = {};
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t at = first + static_cast<std::int64_t>(k) * threads;
      if (at >= chunks) break;
      const Places place = places_of(args, args.axes, at);
      places[k] = place.to;
      loaded[k] = load(from + place.from);
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      if (first + static_cast<std::int64_t>(k) * threads >= chunks) break;
      store(to + places[k], loaded[k]);
    }
  }
}

/// The two axes of a tile: `target` is the fastest of `to` (the last), `source` the fastest of `from`.
struct TileArgs {
  MoveArgs move;
  MoveAxis source, target;
  std::int64_t source_tiles, target_tiles;
};

template <class T>
struct Tile {
  Shared<T> at[tile][tile + 1];
};

struct TilePlace {
  Places outer;
  std::int64_t source, target;
};

__device__ __forceinline__ TilePlace tile_place(const TileArgs& args, std::int64_t index, int size) {
  const std::int64_t rest = index / args.target_tiles;
  const std::int64_t target = index - rest * args.target_tiles;
  const std::int64_t outer = rest / args.source_tiles;
  return {places_of(args.move, args.move.axes, outer), (rest - outer * args.source_tiles) * size, target * size};
}

template <class T>
__global__ void __launch_bounds__(threads) tile_kernel(TileArgs args) {
  auto& cells = shared_storage<Tile<T>>();
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const std::int64_t tiles = elements_of(args.move) * args.source_tiles * args.target_tiles;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TilePlace place = tile_place(args, index, tile);
    const T* from = static_cast<const T*>(args.move.from) + place.outer.from;
    T* to = static_cast<T*>(args.move.to) + place.outer.to;
    T loaded[tile / warps] = {};
#pragma unroll
    for (int k = 0; k < tile / warps; ++k) {
      const std::int64_t source = place.source + lane;
      const std::int64_t target = place.target + warp + k * warps;
      if (source < args.source.extent && target < args.target.extent) {
        loaded[k] = load(from + source * args.source.from + target * args.target.from);
      }
    }
#pragma unroll
    for (int k = 0; k < tile / warps; ++k) cells.at[warp + k * warps][lane] = loaded[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile / warps; ++k) {
      const std::int64_t source = place.source + warp + k * warps;
      const std::int64_t target = place.target + lane;
      if (source < args.source.extent && target < args.target.extent) {
        store<T>(to + source * args.source.to + target * args.target.to, cells.at[lane][warp + k * warps]);
      }
    }
    __syncthreads();
  }
}

/// 2-byte elements, in pairs on both sides: a cell holds a pair along `from`; two cells give a pair along `to` for each
/// of two rows.
struct PairTile {
  Shared<std::uint32_t> at[pair_tile][tile + 1];
};

__global__ void __launch_bounds__(threads) pair_kernel(TileArgs args) {
  auto& cells = shared_storage<PairTile>();
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const std::int64_t tiles = elements_of(args.move) * args.source_tiles * args.target_tiles;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TilePlace place = tile_place(args, index, pair_tile);
    const auto* from = static_cast<const std::uint16_t*>(args.move.from) + place.outer.from;
    auto* to = static_cast<std::uint16_t*>(args.move.to) + place.outer.to;
    std::uint32_t loaded[pair_tile / warps] = {};
#pragma unroll
    for (int k = 0; k < pair_tile / warps; ++k) {
      const std::int64_t source = place.source + 2 * lane;
      const std::int64_t target = place.target + warp + k * warps;
      if (source < args.source.extent && target < args.target.extent) {
        loaded[k] = load(reinterpret_cast<const std::uint32_t*>(from + source + target * args.target.from));
      }
    }
#pragma unroll
    for (int k = 0; k < pair_tile / warps; ++k) cells.at[warp + k * warps][lane] = loaded[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile / warps; ++k) {
      const int pair = warp + k * warps;  // source rows
      const std::int64_t source = place.source + 2 * pair;
      const std::int64_t target = place.target + 2 * lane;
      if (source >= args.source.extent || target >= args.target.extent) continue;
      const std::uint32_t low = cells.at[2 * lane][pair];
      const std::uint32_t high = cells.at[2 * lane + 1][pair];
      std::uint16_t* row = to + source * args.source.to + target;
      store(reinterpret_cast<std::uint32_t*>(row), (low & 0xFFFFU) | high << 16U);
      store(reinterpret_cast<std::uint32_t*>(row + args.source.to), low >> 16U | (high & 0xFFFF0000U));
    }
    __syncthreads();
  }
}

std::uint64_t misfit(const MoveArgs& args) {
  return reinterpret_cast<std::uintptr_t>(args.from) | reinterpret_cast<std::uintptr_t>(args.to);
}

/// The move in chunks of `k` elements of the last axis, if possible.
bool in_chunks(MoveArgs& args, std::int64_t k) {
  if (misfit(args) % static_cast<std::uint64_t>(k * args.element_bytes) != 0) return false;
  MoveAxis& last = args.axis[args.axes - 1];
  if (last.from != 1 || last.to != 1 || last.extent % k != 0) return false;
  for (int a = 0; a + 1 < args.axes; ++a) {
    if (args.axis[a].from % k != 0 || args.axis[a].to % k != 0) return false;
  }
  last.extent /= k;
  for (int a = 0; a + 1 < args.axes; ++a) {
    args.axis[a].from /= k;
    args.axis[a].to /= k;
  }
  return true;
}

std::int64_t element_count(const MoveArgs& args) {
  std::int64_t count = 1;
  for (int a = 0; a < args.axes; ++a) count *= args.axis[a].extent;
  return count;
}

template <class Visit>
void with_element_size(int bytes, const Visit& visit) {
  switch (bytes) {
    case 1: return visit(std::uint8_t{});
    case 2: return visit(std::uint16_t{});
    case 4: return visit(std::uint32_t{});
    case 8: return visit(std::uint64_t{});
    default: throw std::logic_error("move: elements must have 1, 2, 4 or 8 bytes");
  }
}

void launch_rows(const MoveArgs& args, cudaStream_t stream) {
  const Grid grid{blocks_for(element_count(args), threads * in_flight), threads};
  with_element_size(args.element_bytes,
                    [&](auto element) { launch(rows_kernel<decltype(element)>, grid, stream, args); });
}

/// A contiguous run on both sides: packs, then single elements.
void launch_run(MoveArgs args, cudaStream_t stream) {
  const std::int64_t per_pack = pack_bytes / args.element_bytes;
  const std::int64_t rest = args.axis[0].extent % per_pack;
  MoveArgs packs = args;
  packs.axis[0].extent -= rest;
  if (packs.axis[0].extent == 0 || !in_chunks(packs, per_pack)) return launch_rows(args, stream);
  launch(rows_kernel<Chunk16>, Grid{blocks_for(packs.axis[0].extent, threads * in_flight), threads}, stream, packs);
  if (rest == 0) return;
  const std::int64_t done = (args.axis[0].extent - rest) * args.element_bytes;
  args.from = static_cast<const char*>(args.from) + done;
  args.to = static_cast<char*>(args.to) + done;
  args.axis[0].extent = rest;
  launch_rows(args, stream);
}

bool pairs_fit(const TileArgs& args) {
  if (args.move.element_bytes != 2 || misfit(args.move) % 4 != 0) return false;
  if (args.source.from != 1 || args.target.to != 1) return false;
  std::int64_t all = args.source.extent | args.target.extent | args.source.to | args.target.from;
  for (int a = 0; a < args.move.axes; ++a) all |= args.move.axis[a].from | args.move.axis[a].to;
  return all % 2 == 0;
}

void launch_tiles(const MoveArgs& args, int source_axis, cudaStream_t stream) {
  TileArgs tiles{args, args.axis[source_axis], args.axis[args.axes - 1], 0, 0};
  tiles.move.axes = 0;
  for (int a = 0; a + 1 < args.axes; ++a) {
    if (a != source_axis) tiles.move.axis[tiles.move.axes++] = args.axis[a];
  }
  const bool pairs = pairs_fit(tiles);
  const std::int64_t side = pairs ? pair_tile : tile;
  tiles.source_tiles = (tiles.source.extent + side - 1) / side;
  tiles.target_tiles = (tiles.target.extent + side - 1) / side;
  const Grid grid{blocks_for(element_count(tiles.move) * tiles.source_tiles * tiles.target_tiles, 1), threads};
  if (pairs) return launch(pair_kernel, grid, stream, tiles);
  with_element_size(args.element_bytes,
                    [&](auto element) { launch(tile_kernel<decltype(element)>, grid, stream, tiles); });
}

}  // namespace

MoveArgs simplified(MoveArgs args) {
  MoveAxis* end =
      std::remove_if(args.axis, args.axis + args.axes, [](const MoveAxis& axis) { return axis.extent == 1; });
  std::stable_sort(args.axis, end, [](const MoveAxis& a, const MoveAxis& b) { return a.to > b.to; });
  int kept = 0;
  for (const MoveAxis* axis = args.axis; axis != end; ++axis) {
    MoveAxis* before = kept > 0 ? &args.axis[kept - 1] : nullptr;
    if (before != nullptr && before->from == axis->from * axis->extent && before->to == axis->to * axis->extent) {
      *before = {before->extent * axis->extent, axis->from, axis->to};
    } else {
      args.axis[kept++] = *axis;
    }
  }
  if (kept == 0) args.axis[kept++] = {1, 1, 1};
  args.axes = kept;
  return args;
}

void launch_move(const MoveArgs& args, cudaStream_t stream) {
  if (element_count(args) == 0) return;
  const MoveAxis& last = args.axis[args.axes - 1];
  if (args.axes == 1 && last.from == 1 && last.to == 1) return launch_run(args, stream);
  int source_axis = args.axes - 1;
  for (int a = 0; a < args.axes; ++a) {
    if (args.axis[a].from > 0 && args.axis[a].from < args.axis[source_axis].from) source_axis = a;
  }
  // A short side would leave most of a tile empty.
  const bool use_tiles = source_axis != args.axes - 1 && args.axis[source_axis].extent >= 8 && last.extent >= 8;
  if (use_tiles) return launch_tiles(args, source_axis, stream);
  MoveArgs chunks = args;
  if (!in_chunks(chunks, pack_bytes / args.element_bytes)) return launch_rows(args, stream);
  launch(rows_kernel<Chunk16>, Grid{blocks_for(element_count(chunks), threads * in_flight), threads}, stream, chunks);
}

}  // namespace gpubench::cuda

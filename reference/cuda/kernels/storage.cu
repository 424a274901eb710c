// Memory-bound; the order of additions does not matter.
#include "reference/cuda/kernels/runtime.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_lanes;
constexpr int loads_in_flight = 4;
constexpr std::int64_t max_blocks = 2048;

std::int64_t blocks_of(std::int64_t work, std::int64_t per_block) {
  const std::int64_t wanted = blocks_for(work, per_block);
  return wanted < max_blocks ? wanted : max_blocks;
}

__device__ __forceinline__ std::int64_t thread_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t threads_of_grid() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

__global__ void __launch_bounds__(threads) fill_kernel(FillArgs args) {
  for (std::int64_t i = thread_of_grid(); i < args.words; i += threads_of_grid()) store(args.data + i, args.pattern);
}

template <class Unit>
__global__ void __launch_bounds__(threads) gather_kernel(GatherArgs args) {
  const std::int64_t units = args.run_bytes / static_cast<std::int64_t>(sizeof(Unit));
  for (std::int64_t i = thread_of_grid(); i < args.runs * units; i += threads_of_grid()) {
    const std::int64_t run = i / units;
    const char* const from = static_cast<const char*>(args.from) + load(args.offsets + run);
    store(static_cast<Unit*>(args.to) + i, load(reinterpret_cast<const Unit*>(from) + i % units));
  }
}

__device__ __forceinline__ std::uint64_t term(std::uint64_t a, std::uint64_t b, std::int64_t index) {
  const std::uint64_t key = static_cast<std::uint64_t>(index + 1) * 0x9E3779B97F4A7C15ULL;
  const std::uint64_t x = a ^ key;
  const std::uint64_t y = b ^ (key << 32U | key >> 32U);
  return (x * y) ^ multiply_high(x, y);
}

__global__ void __launch_bounds__(threads) fingerprint_kernel(FingerprintArgs args) {
  const std::int64_t whole = args.bytes / 16;
  const std::int64_t step = threads_of_grid();
  std::uint64_t sum = 0;
  std::int64_t i = thread_of_grid();
  for (; i + (loads_in_flight - 1) * step < whole; i += loads_in_flight * step) {
    Loaded<std::uint64_t, 2> words[loads_in_flight];
#pragma unroll
    for (int k = 0; k < loads_in_flight; ++k) words[k] = load_pack<2>(args.data + 2 * (i + k * step));
#pragma unroll
    for (int k = 0; k < loads_in_flight; ++k) sum += term(words[k][0], words[k][1], i + k * step);
  }
  for (; i < whole; i += step) {
    const Loaded<std::uint64_t, 2> words = load_pack<2>(args.data + 2 * i);
    sum += term(words[0], words[1], i);
  }
  if (i == whole && args.bytes % 16 != 0) {  // one thread has the partial last word, padded with zeros
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    const unsigned char* const rest = reinterpret_cast<const unsigned char*>(args.data + 2 * whole);
    for (int k = 0; k < static_cast<int>(args.bytes % 16); ++k) {
      (k < 8 ? low : high) |= static_cast<std::uint64_t>(load(rest + k)) << (8 * (k % 8));
    }
    sum += term(low, high, whole);
  }
  const std::uint64_t total = block_sum(sum, shared_storage<PerWarp<std::uint64_t>>());
  if (threadIdx.x == 0) store(args.parts + blockIdx.x, total);
}

/// A thread's counts and extremes, in registers as narrow as the elements permit.
template <class Bits>
struct Seen {
  using Register = std::conditional_t<sizeof(Bits) == 8, std::uint64_t, std::uint32_t>;
  int unwritten = 0, nan = 0, infinite = 0, finite = 0;
  Register largest = 0, smallest = ~Register{0};
};

template <class Bits>
__device__ __forceinline__ void look(const ScanArgs& args, Bits element, Seen<Bits>& seen) {
  using Register = typename Seen<Bits>::Register;
  const Register bits = element;
  const Register magnitude = bits & static_cast<Register>(args.magnitude);
  if ((bits & static_cast<Register>(args.mask)) != static_cast<Register>(args.pattern)) {
    ++seen.finite;
    seen.largest = magnitude > seen.largest ? magnitude : seen.largest;
    seen.smallest = magnitude < seen.smallest ? magnitude : seen.smallest;
  } else if (bits == static_cast<Register>(args.poison)) {
    ++seen.unwritten;
  } else if (magnitude == static_cast<Register>(args.infinity)) {
    ++seen.infinite;
  } else {
    ++seen.nan;
  }
}

/// The warp's result, in its first lane.
template <class Bits>
__device__ __forceinline__ ScannedChunk together(Seen<Bits> seen) {
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
    const auto largest = __shfl_xor_sync(whole_warp, seen.largest, offset);
    const auto smallest = __shfl_xor_sync(whole_warp, seen.smallest, offset);
    seen.largest = largest > seen.largest ? largest : seen.largest;
    seen.smallest = smallest < seen.smallest ? smallest : seen.smallest;
  }
  const int finite = warp_sum(seen.finite);
  return {warp_sum(seen.unwritten),
          warp_sum(seen.nan),
          warp_sum(seen.infinite),
          finite,
          seen.largest,
          finite == 0 ? std::uint64_t{0} : seen.smallest};
}

// A warp per chunk, in packs of N elements that do not cross a row's end.
template <class Bits, int N>
__global__ void __launch_bounds__(threads) scan_kernel(ScanArgs args) {
  constexpr int step = warp_lanes * N;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::int64_t elements = args.rows * args.columns;
  const std::int64_t step_rows = step / args.columns;
  const std::int64_t step_columns = step % args.columns;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / warp_lanes; i < args.chunk_count;
       i += static_cast<std::int64_t>(gridDim.x) * warps) {
    const std::int64_t begin = (args.first_chunk + i) * args.chunk_elements;
    const std::int64_t end = begin + args.chunk_elements < elements ? begin + args.chunk_elements : elements;
    std::int64_t at = begin + lane * N;
    const Bits* row = static_cast<const Bits*>(args.data) + at / args.columns * args.stride;
    std::int64_t column = at % args.columns;
    const auto next = [&] {
      const Bits* const here = row + column;
      row += step_rows * args.stride;
      column += step_columns;
      if (column >= args.columns) {
        column -= args.columns;
        row += args.stride;
      }
      at += step;
      return here;
    };
    Seen<Bits> seen;
    while (at + (loads_in_flight - 1) * step + N <= end) {
      Loaded<Bits, N> packs[loads_in_flight];
#pragma unroll
      for (int k = 0; k < loads_in_flight; ++k) packs[k] = load_pack<N>(next());
#pragma unroll
      for (int k = 0; k < loads_in_flight; ++k) {
#pragma unroll
        for (int j = 0; j < N; ++j) look(args, packs[k][j], seen);
      }
    }
    while (at < end) {
      const std::int64_t count = end - at;
      const Bits* const here = next();
#pragma unroll
      for (int j = 0; j < N; ++j) {
        if (j < count) look(args, load(here + j), seen);
      }
    }
    const ScannedChunk found = together(seen);
    if (lane != 0) continue;
    ScannedChunk& to = args.found[i];
    store(&to.unwritten, found.unwritten);
    store(&to.nan, found.nan);
    store(&to.infinite, found.infinite);
    store(&to.finite, found.finite);
    store(&to.largest, found.largest);
    store(&to.smallest, found.smallest);
  }
}

template <class Bits>
void launch_typed_scan(const ScanArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<Bits>;
  const Grid grid{blocks_of(args.chunk_count, warps), threads};
  const bool wide = packs_fit<Bits>(args.data, args.rows, args.stride, n) && (args.rows == 1 || args.columns % n == 0);
  wide ? launch(scan_kernel<Bits, n>, grid, stream, args) : launch(scan_kernel<Bits, 1>, grid, stream, args);
}

}  // namespace

void launch_fill(const FillArgs& args, cudaStream_t stream) {
  launch(fill_kernel, Grid{blocks_of(args.words, threads), threads}, stream, args);
}

void launch_gather(const GatherArgs& args, cudaStream_t stream) {
  const Grid grid{blocks_of(args.runs * (args.run_bytes / args.unit_bytes), threads), threads};
  switch (args.unit_bytes) {
    case 16: return launch(gather_kernel<Word>, grid, stream, args);
    case 8: return launch(gather_kernel<std::uint64_t>, grid, stream, args);
    case 4: return launch(gather_kernel<std::uint32_t>, grid, stream, args);
    case 2: return launch(gather_kernel<std::uint16_t>, grid, stream, args);
    default: return launch(gather_kernel<std::uint8_t>, grid, stream, args);
  }
}

int fingerprint_parts(std::int64_t bytes) {
  constexpr std::int64_t per_part = std::int64_t{16} * loads_in_flight * threads;
  const std::int64_t wanted = (bytes + per_part - 1) / per_part;
  return static_cast<int>(wanted < max_fingerprint_parts ? wanted : max_fingerprint_parts);
}

void launch_fingerprint(const FingerprintArgs& args, cudaStream_t stream) {
  launch(fingerprint_kernel, Grid{fingerprint_parts(args.bytes), threads}, stream, args);
}

void launch_scan(const ScanArgs& args, cudaStream_t stream) {
  if (args.rows * args.columns == 0) return;
  switch (args.element_bytes) {
    case 8: return launch_typed_scan<std::uint64_t>(args, stream);
    case 4: return launch_typed_scan<std::uint32_t>(args, stream);
    case 2: return launch_typed_scan<std::uint16_t>(args, stream);
    default: return launch_typed_scan<std::uint8_t>(args, stream);
  }
}

}  // namespace gpubench::cuda

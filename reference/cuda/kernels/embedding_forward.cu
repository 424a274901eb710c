// Rows by token: 16 bytes at a time where everything is aligned, else single elements.
#include <stdexcept>

#include "reference/cuda/kernels/embedding.h"
#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;  // chunks of a thread

template <class Chunk>
__global__ void __launch_bounds__(threads) forward_kernel(EmbeddingForwardArgs args) {
  // Everything counted in chunks.
  const std::int64_t scale = sizeof(Chunk) / static_cast<unsigned>(args.element_bytes);
  const std::int64_t columns = args.columns / scale;
  const std::int64_t chunks = columns * args.tokens_count;
  const auto* table = static_cast<const Chunk*>(args.table);
  auto* y = static_cast<Chunk*>(args.y);
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < chunks;
       first += static_cast<std::int64_t>(gridDim.x) * threads * in_flight) {
    std::int64_t rows[in_flight];
    int tokens[in_flight];
    Chunk held[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t at = first + k * threads;
      rows[k] = chunks <= 0xFFFFFFFF ? static_cast<unsigned>(at) / static_cast<unsigned>(columns) : at / columns;
      tokens[k] = at < chunks ? load(args.tokens + rows[k]) : -1;
    }
    const auto column = [&](int k) { return first + k * threads - rows[k] * columns; };
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      if (tokens[k] >= 0 && tokens[k] < args.vocabulary) {
        held[k] = load(table + tokens[k] * (args.table_stride / scale) + column(k));
      } else {
        memset(&held[k], 0xFF, sizeof(Chunk));
      }
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      if (first + k * threads < chunks) store(y + rows[k] * (args.y_stride / scale) + column(k), held[k]);
    }
  }
}

template <class Chunk>
bool chunks_fit(const EmbeddingForwardArgs& args) {
  const auto fits = [&](const void* data, std::int64_t stride, std::int64_t rows) {
    return reinterpret_cast<std::uintptr_t>(data) % sizeof(Chunk) == 0 &&
           (rows <= 1 || static_cast<std::uint64_t>(stride * args.element_bytes) % sizeof(Chunk) == 0);
  };
  return static_cast<std::uint64_t>(args.columns * args.element_bytes) % sizeof(Chunk) == 0 &&
         fits(args.table, args.table_stride, args.vocabulary) && fits(args.y, args.y_stride, args.tokens_count);
}

template <class Chunk>
void launch_chunks(const EmbeddingForwardArgs& args, cudaStream_t stream) {
  const std::int64_t chunks =
      args.columns * args.element_bytes / static_cast<std::int64_t>(sizeof(Chunk)) * args.tokens_count;
  launch(forward_kernel<Chunk>, Grid{blocks_for(chunks, threads * in_flight), threads}, stream, args);
}

}  // namespace

void launch_embedding_forward(const EmbeddingForwardArgs& args, cudaStream_t stream) {
  if (chunks_fit<Pack<std::uint32_t, 4>>(args)) return launch_chunks<Pack<std::uint32_t, 4>>(args, stream);
  switch (args.element_bytes) {
    case 1: return launch_chunks<std::uint8_t>(args, stream);
    case 2: return launch_chunks<std::uint16_t>(args, stream);
    case 4: return launch_chunks<std::uint32_t>(args, stream);
    case 8: return launch_chunks<std::uint64_t>(args, stream);
    default: throw std::logic_error("embedding_forward: elements must have 1, 2, 4 or 8 bytes");
  }
}

}  // namespace gpubench::cuda

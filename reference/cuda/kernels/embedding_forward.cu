// Rows by token: 16 bytes at a time where everything is aligned, else single elements.
#include <stdexcept>

#include "reference/cuda/kernels/embedding.h"
#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

template <class Chunk>
__global__ void __launch_bounds__(threads) forward_kernel(EmbeddingForwardArgs args) {
  // Everything counted in chunks.
  const std::int64_t scale = sizeof(Chunk) / static_cast<unsigned>(args.element_bytes);
  const std::int64_t columns = args.columns / scale;
  const std::int64_t chunks = columns * args.tokens_count;
  const auto* table = static_cast<const Chunk*>(args.table);
  auto* y = static_cast<Chunk*>(args.y);
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < chunks;
       at += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t row =
        chunks <= 0xFFFFFFFF ? static_cast<unsigned>(at) / static_cast<unsigned>(columns) : at / columns;
    const std::int64_t column = at - row * columns;
    const int token = load(args.tokens + row);
    Chunk chunk;
    if (token >= 0 && token < args.vocabulary) {
      chunk = load(table + token * (args.table_stride / scale) + column);
    } else {
      for (unsigned i = 0; i < sizeof(Chunk); ++i) reinterpret_cast<unsigned char*>(&chunk)[i] = 0xFF;
    }
    store(y + row * (args.y_stride / scale) + column, chunk);
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
  launch(forward_kernel<Chunk>, Grid{blocks_for(chunks, threads), threads}, stream, args);
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

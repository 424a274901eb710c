#include "harness/run/arena.h"

#include <algorithm>

namespace gpubench {
namespace {

constexpr std::size_t alignment = 256;  // what GPU libraries have fast code for
constexpr std::size_t smallest_chunk = std::size_t{32} << 20U;

}  // namespace

Buffer Arena::allocate(std::size_t bytes, Memory memory, int rank) {
  return memory == Memory::device ? backend_.allocate_on(rank, bytes) : backend_.allocate_in(memory, bytes);
}

std::byte* Arena::take(std::size_t bytes, Memory memory, int rank) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& c) {
    return c.memory == memory && c.rank == rank && c.buffer.bytes() - c.used >= rounded;
  });
  if (chunk == chunks_.end()) {
    chunks_.push_back({allocate(std::max(rounded, smallest_chunk), memory, rank), 0, memory, rank});
    chunk = chunks_.end() - 1;
  }
  std::byte* const place = chunk->buffer.data() + chunk->used;
  chunk->used += rounded;
  return place;
}

void Arena::reset(std::size_t keep_bytes) {
  host_.trim(keep_bytes);
  for (Chunk& chunk : chunks_) chunk.used = 0;
  while (!chunks_.empty() && held_bytes() > keep_bytes) {
    chunks_.erase(std::max_element(chunks_.begin(), chunks_.end(),
                                   [](const Chunk& a, const Chunk& b) { return a.buffer.bytes() < b.buffer.bytes(); }));
  }
}

std::size_t Arena::held_bytes() const {
  std::size_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.buffer.bytes();
  return total;
}

}  // namespace gpubench

#include "harness/run/memory_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t min_kept_bytes = std::size_t{1} << 20U;  // the allocator is fast enough for smaller blocks
constexpr std::size_t largest_step = std::size_t{256} << 20U;  // of rounding sizes up, so that cases share blocks
constexpr std::size_t alignment = 256;                         // GPU libraries have fast code for it
constexpr std::size_t smallest_chunk = std::size_t{32} << 20U;

std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::min(std::bit_ceil(bytes), largest_step);
  return (bytes + step - 1) / step * step;
}

Buffer ordinary(std::size_t bytes) {
  auto* const data = static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{page}));
  return {data, bytes,
          std::shared_ptr<void>(data, [](void* held) { ::operator delete (held, std::align_val_t{page}); })};
}

}  // namespace

HostBlock HostMemory::take(std::size_t bytes) {
  if (bytes < min_kept_bytes) {
    auto small = std::make_shared<const Buffer>(ordinary(bytes));
    return {{small->data(), bytes}, small};
  }
  Kept* best = nullptr;
  for (Kept& block : blocks_) {
    if (!block.is_free() || block.buffer.bytes() < bytes) continue;
    if (best == nullptr || block.buffer.bytes() < best->buffer.bytes()) best = &block;
  }
  if (best == nullptr) {
    std::erase_if(blocks_, [](const Kept& block) { return block.is_free(); });
    blocks_.push_back(allocate(rounded(bytes)));
    best = &blocks_.back();
  }
  return {{best->buffer.data(), bytes}, best->use};
}

HostMemory::Kept HostMemory::allocate(std::size_t bytes) {
  std::size_t pinned = bytes;
  for (const Kept& block : blocks_) pinned += block.pinned ? block.buffer.bytes() : 0;
  Kept made;
  try {
    if (pinned <= max_pinned_bytes) {
      made.buffer = backend_.allocate_in(Memory::pinned_host, bytes);
      made.pinned = true;
    }
  } catch (const Unsupported&) {   // no pinned memory
  } catch (const BackendError&) {  // the system's limit of pinned memory
  }
  if (!made.pinned) made.buffer = ordinary(bytes);
  made.use = std::make_shared<const Buffer>(made.buffer);
  return made;
}

void HostMemory::trim(std::size_t keep_bytes) {
  while (held_bytes() > keep_bytes) {
    const auto largest = std::max_element(blocks_.begin(), blocks_.end(), [](const Kept& a, const Kept& b) {
      return (a.is_free() ? a.buffer.bytes() : 0) < (b.is_free() ? b.buffer.bytes() : 0);
    });
    if (!largest->is_free()) return;
    blocks_.erase(largest);
  }
}

std::size_t HostMemory::held_bytes() const {
  std::size_t total = 0;
  for (const Kept& block : blocks_) total += block.buffer.bytes();
  return total;
}

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

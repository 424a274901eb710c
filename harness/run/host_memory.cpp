#include "harness/run/host_memory.h"

#include <algorithm>
#include <bit>
#include <new>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr std::size_t page = 4096;
// Smaller ones are not worth a block of their own: the allocator has them at hand.
constexpr std::size_t smallest_kept = std::size_t{1} << 20U;
// Sizes are rounded up, so that blocks of one case serve the next.
constexpr std::size_t largest_step = std::size_t{256} << 20U;

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
  if (bytes < smallest_kept) {
    auto small = std::make_shared<const Buffer>(ordinary(bytes));
    return {{small->data(), bytes}, small};
  }
  Kept* best = nullptr;
  for (Kept& block : blocks_) {
    if (!block.is_free() || block.buffer.bytes() < bytes) continue;
    if (best == nullptr || block.buffer.bytes() < best->buffer.bytes()) best = &block;
  }
  if (best == nullptr) {
    // What is too small now would only lie beside the larger one.
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
    if (pinned <= most_pinned_bytes) {
      made.buffer = backend_.allocate_in(Memory::pinned_host, bytes);
      made.pinned = true;
    }
  } catch (const Unsupported&) {   // it has none
  } catch (const BackendError&) {  // the system lets no more be pinned
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

}  // namespace gpubench

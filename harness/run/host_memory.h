// Host memory that content of a device passes through: taken again and again, so that it is touched once, and pinned
// where the backend has such memory, so that it crosses the bus at the bus's speed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Bytes on the host; they stay as long as a copy of this does.
struct HostBlock {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};

class HostMemory {
 public:
  /// The backend must outlive it.
  explicit HostMemory(Backend& backend) : backend_(backend) {}

  /// `bytes` bytes, not initialized: a block that nobody holds any more where there is one, else a new one. Pinned, up
  /// to most_pinned_bytes in all; ordinary memory where the backend has no other.
  [[nodiscard]] HostBlock take(std::size_t bytes);

  /// Blocks that nobody holds go back, the largest first, until at most `keep_bytes` are held.
  void trim(std::size_t keep_bytes);

  /// Held for later and in use; small blocks are not kept.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Kept {
    Buffer buffer;
    std::shared_ptr<const void> use;  // shared with those who hold the block
    bool pinned = false;
    [[nodiscard]] bool is_free() const { return use.use_count() == 1; }
  };
  [[nodiscard]] Kept allocate(std::size_t bytes);

  Backend& backend_;
  std::vector<Kept> blocks_;
};

/// A machine of GPUs has some hundred gigabytes; pinning costs about a second for each four of them.
inline constexpr std::size_t most_pinned_bytes = std::size_t{8} << 30U;

}  // namespace gpubench

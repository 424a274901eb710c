// Memory that the cases of a process share: an arena on the device, and the host memory that its content passes
// through.
//
// Touching fresh memory costs a page fault per 4 KiB; the cold copies of every case would pay it again and again. So
// memory is touched once and reused.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Bytes on the host, valid as long as a copy of this exists.
struct HostBlock {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Pinning takes about a second for every 4 GB, and a machine with GPUs may have hundreds of them.
inline constexpr std::size_t max_pinned_bytes = std::size_t{8} << 30U;

/// Blocks of host memory, pinned where the backend has such memory, so that copies run at the speed of the bus.
class HostMemory {
 public:
  /// The backend must outlive it.
  explicit HostMemory(Backend& backend) : backend_(backend) {}

  /// `bytes` uninitialized bytes: a free block if one is large enough, else a new one. Pinned up to max_pinned_bytes
  /// in all; ordinary memory beyond that, and where the backend has no other.
  [[nodiscard]] HostBlock take(std::size_t bytes);

  /// Returns free blocks, the largest first, until at most `keep_bytes` are held.
  void trim(std::size_t keep_bytes);

  /// Bytes in use and kept for later; small blocks are not kept.
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

/// Device memory of one backend in chunks, which are kept when a group of cases ends.
class Arena {
 public:
  /// The backend must outlive the arena.
  explicit Arena(Backend& backend) : backend_(backend), host_(backend) {}

  /// 256-byte aligned memory of a rank, valid until reset(). Throws what Backend::allocate_on and allocate_in throw.
  [[nodiscard]] std::byte* take(std::size_t bytes, Memory memory = Memory::device, int rank = 0);

  /// Makes everything available again. Chunks beyond `keep_bytes` in all go back to the backend.
  void reset(std::size_t keep_bytes);

  /// Host memory for the content of that memory; reset() trims it in the same way.
  [[nodiscard]] HostMemory& host() { return host_; }

  /// Device memory held from the backend, in use or not.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Chunk {
    Buffer buffer;
    std::size_t used = 0;
    Memory memory = Memory::device;
    int rank = 0;
  };
  [[nodiscard]] Buffer allocate(std::size_t bytes, Memory memory, int rank);

  Backend& backend_;
  HostMemory host_;
  std::vector<Chunk> chunks_;
};

}  // namespace gpubench

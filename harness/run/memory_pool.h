// Memory that the cases of a process share: an arena on the device, and host memory for transfers. It is reused because
// touching fresh memory costs a page fault per 4 KiB in the cold copies of every case.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Valid as long as a copy of it exists.
struct HostBlock {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Limited since pinning takes about 1 s per 4 GB, and hosts of GPUs have hundreds of GB.
inline constexpr std::size_t max_pinned_bytes = std::size_t{8} << 30U;

/// Blocks of host memory, pinned where the backend supports it, so that copies run at the speed of the bus.
class HostMemory {
 public:
  /// The backend must outlive it.
  explicit HostMemory(Backend& backend) : backend_(backend) {}

  /// `bytes` uninitialized bytes: a free block if one is large enough, else a new one. Pinned up to max_pinned_bytes
  /// in all; else ordinary memory.
  [[nodiscard]] HostBlock take(std::size_t bytes);

  /// Frees unused blocks, the largest first, until at most `keep_bytes` are held.
  void trim(std::size_t keep_bytes);

  /// Bytes in use and kept; small blocks are not kept.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Kept {
    Buffer buffer;
    std::shared_ptr<const void> use;  // shared with HostBlock::owner
    bool pinned = false;
    [[nodiscard]] bool is_free() const { return use.use_count() == 1; }
  };
  [[nodiscard]] Kept allocate(std::size_t bytes);

  Backend& backend_;
  std::vector<Kept> blocks_;
};

/// Device memory of one backend, in chunks that are reused by the next group of cases.
class Arena {
 public:
  /// The backend must outlive the arena.
  explicit Arena(Backend& backend) : backend_(backend), host_(backend) {}

  /// Of a rank, aligned to 256 bytes, valid until reset(). Throws the errors of Backend::allocate_on and allocate_in.
  [[nodiscard]] std::byte* take(std::size_t bytes, Memory memory = Memory::device, int rank = 0);

  /// Makes all memory available again and returns chunks beyond `keep_bytes` in all to the backend.
  void reset(std::size_t keep_bytes);

  /// Host memory for transfers; reset() trims it in the same way.
  [[nodiscard]] HostMemory& host() { return host_; }

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

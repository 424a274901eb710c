// One arena of device memory that all groups of a process share.
//
// Touching fresh memory costs a page fault per 4 KiB; cold copies of every case would pay it again and
// again. One arena, touched once, serves all cases. Chunks are kept when a group ends.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/core/backend.h"
#include "harness/run/host_memory.h"

namespace gpubench {

class Arena {
 public:
  /// The backend must outlive the arena.
  explicit Arena(Backend& backend) : backend_(backend), host_(backend) {}

  /// 256-byte aligned memory of a rank, valid until reset(). Throws what Backend::allocate_on and allocate_in throw.
  [[nodiscard]] std::byte* take(std::size_t bytes, Memory memory = Memory::device, int rank = 0);

  /// Everything taken may be handed out again. Chunks beyond `keep_bytes` in all go back to the backend.
  void reset(std::size_t keep_bytes);

  /// Where content of that memory is held on the host; reset() trims it alike.
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

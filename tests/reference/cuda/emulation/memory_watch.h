// Watches what kernels do to global memory: nothing outside of what a launch was given, no write to its inputs, every
// wide access aligned, and nothing that one thread writes is touched by another within the same launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpubench::cuda::emulation {

/// Bytes that launches may read, and perhaps write.
struct Region {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
  std::string name;         ///< for messages
  std::size_t granule = 4;  ///< bytes of the smallest element; what is smaller is taken for touching its neighbours
};

/// While it lives, launches may touch these regions only (without one: anything). They may overlap.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::vector<Region> regions);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
};

/// What kernels have read of global memory so far, in bytes.
[[nodiscard]] std::int64_t bytes_read();

/// Each throws Fault where the access must not be.
void observe_read(const void* from, int bytes, int alignment);
void observe_write(const void* to, int bytes, int alignment);
void observe_atomic(const void* cell, int bytes);

}  // namespace gpubench::cuda::emulation

// Checks kernels' accesses to global memory: within the launch's regions, no writes to inputs, aligned, and no access
// to data that another thread of the launch writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpubench::cuda::emulation {

/// Bytes that launches may read and, optionally, write.
struct Region {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
  std::string name;
  std::size_t granule = 4;  ///< bytes of the smallest element; smaller accesses count as touching neighbours
};

/// While it lives, launches may access only these regions, which may overlap. Without one, anything.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::vector<Region> regions);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
};

/// Bytes of global memory that kernels have read so far.
[[nodiscard]] std::int64_t bytes_read();

/// Each throws Fault for a forbidden access.
void observe_read(const void* from, int bytes, int alignment);
void observe_write(const void* to, int bytes, int alignment);
void observe_atomic(const void* cell, int bytes);

}  // namespace gpubench::cuda::emulation

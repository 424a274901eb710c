// What the host offers this process: processors, memory, caches, instruction sets, as the kernel tells it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpubench::cpu {

/// Processors that this process may use: its affinity, at most the cgroup's quota rounded up, at least 1.
[[nodiscard]] int usable_threads();

struct HostMemory {
  std::int64_t total_bytes = 0;      ///< of the machine, or of the cgroup where that is less
  std::int64_t available_bytes = 0;  ///< without swapping, within the cgroup's limit
};
[[nodiscard]] HostMemory host_memory();

/// Bytes of the last-level cache as counted for cold copies: at most 32 MiB, since virtual machines may claim all of
/// the host's cache.
[[nodiscard]] std::int64_t cold_cache_bytes();

/// As /proc/cpuinfo prints it.
[[nodiscard]] std::string processor_name();

/// The vector and matrix extensions among the processor's flags, in the kernel's words.
[[nodiscard]] std::vector<std::string> instruction_sets();

}  // namespace gpubench::cpu

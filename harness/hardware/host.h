// The machine as the kernel reports it: read-only, no vendor library, a few milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpubench {

struct HostCache {
  std::string type;  ///< "Data", "Instruction", "Unified"
  int level = 0;
  std::int64_t bytes = 0;
  int sharing = 1;  ///< logical processors that share it
};

struct HostInfo {
  std::string host_name;
  std::string kernel;        ///< "Linux 6.1.0-18-amd64"
  std::string distribution;  ///< "Debian GNU/Linux 12 (bookworm)"
  std::string cpu_model;
  std::vector<std::string> instruction_sets;  ///< the relevant ones: avx2, fma, avx512f, avx512_bf16, amx_bf16, ...
  int cpus = 1;                               ///< online
  int usable_cpus = 1;                        ///< in this process's affinity mask
  int sockets = 1;
  int mhz = 0;
  std::optional<double> cgroup_cpus;  ///< quota, if any
  std::int64_t memory_bytes = 0;
  std::int64_t available_bytes = 0;  ///< of the machine or of the cgroup, whichever is less
  std::optional<std::int64_t> cgroup_memory_bytes;
  std::string governor;                ///< of the first processor; empty if the kernel has none
  std::optional<double> cpu_pressure;  ///< percent of the last 10 s in which some task waited for a processor
  std::vector<double> load_avg;
  std::vector<HostCache> caches;

  /// Frequencies may change: there is a governor other than "performance".
  [[nodiscard]] bool cpu_scaling_enabled() const { return !governor.empty() && governor != "performance"; }
};

/// Reads /proc, /sys and /etc under `root` (tests use a separate folder). Unreadable values keep their defaults.
[[nodiscard]] HostInfo read_host(const std::string& root = "");

}  // namespace gpubench

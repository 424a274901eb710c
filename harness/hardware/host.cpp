#include "harness/hardware/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "harness/core/processor.h"

namespace gpubench {
namespace {

// Kernel files are untrusted: a container, a hypervisor or an emulator may have written them.
constexpr std::streamsize max_bytes = std::streamsize{16} << 20;  // 4096 processors in /proc/cpuinfo take 6 MB
constexpr int max_mhz = 1'000'000;
constexpr int max_cpus = 1 << 20;
constexpr int max_caches = 64;
constexpr int max_levels = 16;
constexpr double max_memory = 0x1p62;  // bytes; exact, and a sum of two is no overflow

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (static_cast<std::streamsize>(text.size()) < max_bytes && file.read(block, sizeof block).gcount() > 0)
    text.append(block, static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n\"");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\n\"") + 1 - first));
}

std::optional<double> number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A count in [least, most], else `otherwise`.
int count_in(std::string_view text, int least, int most, int otherwise) {
  const std::optional<double> value = number(text);
  return value && *value >= least && *value <= most ? static_cast<int>(*value) : otherwise;
}

std::optional<std::int64_t> bytes_of(std::optional<double> count, double unit) {
  if (!count || !(*count >= 0.0) || !(*count * unit <= max_memory)) return std::nullopt;
  return static_cast<std::int64_t>(*count * unit);
}

std::int64_t kilobytes(const std::string& meminfo, std::string_view key) {
  return bytes_of(number(line_value(meminfo, key)), 1024.0).value_or(0);
}

// "48K", "2M" as /sys writes cache sizes.
std::int64_t size_with_suffix(const std::string& text) {
  const char suffix = text.empty() ? ' ' : text.back();
  return bytes_of(number(text), suffix == 'K' ? 1024.0 : suffix == 'M' ? 1024.0 * 1024.0 : 1.0).value_or(0);
}

int count_cpus(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const int first = count_in(part, 0, max_cpus, -1);
    const int last =
        dash == std::string::npos ? first : count_in(std::string_view(part).substr(dash + 1), 0, max_cpus, -1);
    if (first >= 0 && last >= first) count = std::min(count + (last - first) + 1, max_cpus);
  }
  return std::max(count, 1);
}

void read_cpu(const std::string& root, HostInfo& host) {
  const std::string cpuinfo = read_text(root + "/proc/cpuinfo");
  host.cpu_model = processor_model(cpuinfo);
  host.instruction_sets = instruction_sets(cpuinfo);
  host.mhz = count_in(line_value(cpuinfo, "cpu MHz"), 0, max_mhz, 0);
  host.cpus = count_cpus(trimmed(read_text(root + "/sys/devices/system/cpu/online")));
  std::set<std::string> packages;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("physical id")) packages.insert(line);
  }
  host.sockets = std::max<int>(1, static_cast<int>(packages.size()));
  host.governor = trimmed(read_text(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
}

void read_caches(const std::string& root, HostInfo& host) {
  for (int index = 0; index < max_caches; ++index) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu0/cache/index{}/", root, index);
    const std::string type = trimmed(read_text(folder + "type"));
    if (type.empty()) return;
    const int level = count_in(read_text(folder + "level"), 1, max_levels, 0);
    if (level == 0) continue;  // unreportable
    host.caches.push_back({type, level, size_with_suffix(trimmed(read_text(folder + "size"))),
                           count_cpus(trimmed(read_text(folder + "shared_cpu_list")))});
  }
}

void read_memory(const std::string& root, HostInfo& host) {
  const std::string meminfo = read_text(root + "/proc/meminfo");
  host.memory_bytes = kilobytes(meminfo, "MemTotal");
  host.available_bytes = kilobytes(meminfo, "MemAvailable");
  struct sysinfo kernel {};
  if (host.memory_bytes > 0 || !root.empty() || ::sysinfo(&kernel) != 0) return;
  host.memory_bytes = static_cast<std::int64_t>(kernel.totalram) * kernel.mem_unit;
  host.available_bytes =
      static_cast<std::int64_t>(kernel.freeram) * kernel.mem_unit;  // except caches, which /proc would count
}

// cgroup v2 first, then v1. A container sees its own limits at the root of the mounted hierarchy.
void read_cgroup(const std::string& root, HostInfo& host) {
  const std::string base = root + "/sys/fs/cgroup/";
  std::istringstream cpu_max(read_text(base + "cpu.max"));
  std::string quota, period;
  if (!(cpu_max >> quota >> period)) {
    quota = trimmed(read_text(base + "cpu/cpu.cfs_quota_us"));
    period = trimmed(read_text(base + "cpu/cpu.cfs_period_us"));
  }
  const auto q = number(quota), p = number(period);
  if (q && p && *q > 0.0 && *p > 0.0) host.cgroup_cpus = *q / *p;

  auto limit = number(trimmed(read_text(base + "memory.max")));
  auto used = number(trimmed(read_text(base + "memory.current")));
  if (!limit) {
    limit = number(trimmed(read_text(base + "memory/memory.limit_in_bytes")));
    used = number(trimmed(read_text(base + "memory/memory.usage_in_bytes")));
  }
  if (!limit || *limit >= static_cast<double>(host.memory_bytes)) return;  // v1 writes 2^63 for "none"
  if (!(*limit >= 0.0)) return;
  host.cgroup_memory_bytes = static_cast<std::int64_t>(*limit);
  const auto left = static_cast<std::int64_t>(std::max(0.0, *limit - used.value_or(0.0)));
  host.available_bytes = std::min(host.available_bytes, left);
}

void read_system(const std::string& root, HostInfo& host) {
  utsname names{};
  if (::uname(&names) == 0) {
    host.host_name = names.nodename;
    host.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  host.distribution = line_value(read_text(root + "/etc/os-release"), "PRETTY_NAME", '=');
  std::istringstream load(read_text(root + "/proc/loadavg"));
  for (double value = 0.0; host.load_avg.size() < 3 && load >> value && std::isfinite(value) && value >= 0.0;)
    host.load_avg.push_back(value);
  const std::string pressure = read_text(root + "/proc/pressure/cpu");
  const auto at = pressure.find("avg10=");
  if (at != std::string::npos) host.cpu_pressure = number(std::string_view(pressure).substr(at + 6));
  if (host.cpu_pressure && !(*host.cpu_pressure >= 0.0 && *host.cpu_pressure <= 100.0)) host.cpu_pressure.reset();
}

}  // namespace

HostInfo read_host(const std::string& root) {
  HostInfo host;
  read_system(root, host);
  read_cpu(root, host);
  read_caches(root, host);
  read_memory(root, host);
  read_cgroup(root, host);
  host.usable_cpus = host.cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (root.empty() && ::sched_getaffinity(0, sizeof mask, &mask) == 0) host.usable_cpus = CPU_COUNT(&mask);
  return host;
}

}  // namespace gpubench

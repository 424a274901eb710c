#include "harness/hardware/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace gpubench {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n\"");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\n\"") + 1 - first));
}

// The value after "key<blanks><separator>" of the first line that starts with the key.
std::string value_of(const std::string& text, std::string_view key, char separator) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(separator);
    if (at != std::string::npos && trimmed(std::string_view(line).substr(0, at)) == key)
      return trimmed(line.substr(at + 1));
  }
  return "";
}

std::optional<double> number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::int64_t kilobytes(const std::string& meminfo, std::string_view key) {
  return static_cast<std::int64_t>(number(value_of(meminfo, key, ':')).value_or(0.0)) * 1024;
}

// "48K", "2M" as /sys writes cache sizes.
std::int64_t size_with_suffix(const std::string& text) {
  const double count = number(text).value_or(0.0);
  const char suffix = text.empty() ? ' ' : text.back();
  return static_cast<std::int64_t>(count) * (suffix == 'K' ? 1024 : suffix == 'M' ? 1024 * 1024 : 1);
}

// Processors in a list such as "0-3,8-11".
int count_cpus(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = number(part);
    const auto last = dash == std::string::npos ? first : number(std::string_view(part).substr(dash + 1));
    if (first && last) count += static_cast<int>(*last - *first) + 1;
  }
  return std::max(count, 1);
}

void read_cpu(const std::string& root, HostInfo& host) {
  const std::string cpuinfo = read_text(root + "/proc/cpuinfo");
  host.cpu_model = value_of(cpuinfo, "model name", ':');
  host.mhz = static_cast<int>(number(value_of(cpuinfo, "cpu MHz", ':')).value_or(0.0));
  host.cpus = count_cpus(trimmed(read_text(root + "/sys/devices/system/cpu/online")));
  std::istringstream flags(value_of(cpuinfo, "flags", ':'));
  const std::set<std::string> all{std::istream_iterator<std::string>(flags), {}};
  for (const char* set : {"sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16",
                          "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"}) {
    if (all.contains(set)) host.instruction_sets.emplace_back(set);
  }
  std::set<std::string> packages;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("physical id")) packages.insert(line);
  }
  host.sockets = std::max<int>(1, static_cast<int>(packages.size()));
  host.governor = trimmed(read_text(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
}

void read_caches(const std::string& root, HostInfo& host) {
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu0/cache/index{}/", root, index);
    const std::string type = trimmed(read_text(folder + "type"));
    if (type.empty()) return;
    host.caches.push_back({type, static_cast<int>(number(read_text(folder + "level")).value_or(0.0)),
                           size_with_suffix(trimmed(read_text(folder + "size"))),
                           count_cpus(trimmed(read_text(folder + "shared_cpu_list")))});
  }
}

void read_memory(const std::string& root, HostInfo& host) {
  const std::string meminfo = read_text(root + "/proc/meminfo");
  host.memory_bytes = kilobytes(meminfo, "MemTotal");
  host.available_bytes = kilobytes(meminfo, "MemAvailable");
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
  host.distribution = value_of(read_text(root + "/etc/os-release"), "PRETTY_NAME", '=');
  std::istringstream load(read_text(root + "/proc/loadavg"));
  for (double value = 0.0; host.load_avg.size() < 3 && load >> value;) host.load_avg.push_back(value);
  const std::string pressure = read_text(root + "/proc/pressure/cpu");
  const auto at = pressure.find("avg10=");
  if (at != std::string::npos) host.cpu_pressure = number(std::string_view(pressure).substr(at + 6));
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

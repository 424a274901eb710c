#include "reference/cpu/host.h"

#include <fmt/core.h>
#include <omp.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "harness/core/processor.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t largest_cold_cache = std::int64_t{32} << 20;
constexpr std::int64_t max_bytes = std::int64_t{1} << 62;  // plausible upper limit

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;  // "max": no limit
  return value;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The lines of a file before the first empty one.
std::string first_paragraph(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) text += line + '\n';
  return text;
}

// The folders that may limit this process, innermost first: its cgroup and the parents. `controller`: "" for version 2,
// else a version 1 controller. In a container the path may not exist: then only the root counts.
std::vector<std::string> cgroup_folders(std::string_view controller) {
  const std::string root = controller.empty() ? "/sys/fs/cgroup" : fmt::format("/sys/fs/cgroup/{}", controller);
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    std::string path = line.substr(second + 1);
    for (; path.size() > 1; path.resize(path.rfind('/'))) folders.push_back(root + path);
  }
  folders.push_back(root);
  return folders;
}

// The lowest CPU quota, in processors, of these cgroups.
double quota() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& folder : cgroup_folders("")) {
    std::istringstream line(first_line(folder + "/cpu.max"));
    std::string limit, period;
    line >> limit >> period;
    const auto part = number_in(limit), whole = number_in(period);
    if (part && whole && *whole > 0) least = std::min(least, static_cast<double>(*part) / static_cast<double>(*whole));
  }
  for (const std::string& folder : cgroup_folders("cpu")) {
    const auto part = number_in(first_line(folder + "/cpu.cfs_quota_us"));
    const auto whole = number_in(first_line(folder + "/cpu.cfs_period_us"));
    if (part && whole && *part > 0 && *whole > 0) {
      least = std::min(least, static_cast<double>(*part) / static_cast<double>(*whole));
    }
  }
  return least;
}

void limit_memory(HostMemory& memory, const std::string& limit_file, const std::string& usage_file) {
  const auto limit = number_in(first_line(limit_file));
  if (!limit || *limit <= 0 || *limit >= memory.total_bytes) return;
  memory.total_bytes = *limit;
  const std::int64_t used = number_in(first_line(usage_file)).value_or(0);
  memory.available_bytes = std::clamp<std::int64_t>(*limit - used, 0, memory.available_bytes);
}

// `count` units in bytes; 0 for implausible sizes.
std::int64_t bytes_of(std::optional<std::int64_t> count, std::int64_t unit) {
  return count && *count > 0 && *count <= max_bytes / unit ? *count * unit : 0;
}

// "105M", "32768K"
std::int64_t cache_size(const std::string& text) {
  const bool kib = text.find('K') != std::string::npos, mib = text.find('M') != std::string::npos;
  return bytes_of(number_in(text), kib ? 1 << 10 : mib ? 1 << 20 : 1);
}

// The object that last pinned a thread; threads started later have none.
std::atomic<std::uint64_t> last_mark{0};
thread_local std::uint64_t mark_of_thread = 0;
thread_local cpu_set_t pinned_to{};

}  // namespace

std::vector<int> usable_processors() {
  cpu_set_t allowed;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

int usable_threads() {
#ifdef __SANITIZE_THREAD__
  // libgomp is not built for the thread sanitizer, which would report all its barriers. One OpenMP thread leaves our
  // own concurrency to check.
  return 1;
#endif
  int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (const std::size_t allowed = usable_processors().size(); allowed > 0) count = static_cast<int>(allowed);
  const double limit = quota();
  return limit < count ? std::max(1, static_cast<int>(std::ceil(limit))) : count;
}

HostMemory host_memory() {
  constexpr std::int64_t kib = 1024;
  HostMemory memory;
  const std::string meminfo = first_paragraph("/proc/meminfo");
  memory.total_bytes = bytes_of(number_in(line_value(meminfo, "MemTotal")), kib);
  memory.available_bytes = bytes_of(number_in(line_value(meminfo, "MemAvailable")), kib);
  struct sysinfo kernel {};
  if (memory.total_bytes == 0 && ::sysinfo(&kernel) == 0) {  // without /proc, whose numbers include reclaimable caches
    memory.total_bytes = bytes_of(static_cast<std::int64_t>(kernel.totalram), kernel.mem_unit);
    memory.available_bytes = bytes_of(static_cast<std::int64_t>(kernel.freeram), kernel.mem_unit);
  }
  for (const std::string& folder : cgroup_folders("")) {
    limit_memory(memory, folder + "/memory.max", folder + "/memory.current");
  }
  for (const std::string& folder : cgroup_folders("memory")) {
    limit_memory(memory, folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
  }
  return memory;
}

std::int64_t cold_cache_bytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    largest = std::max(largest, cache_size(first_line(folder + "/size")));
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (largest == 0) largest = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
  return largest <= 0 ? largest_cold_cache : std::min(largest, largest_cold_cache);
}

std::string first_processor() { return first_paragraph("/proc/cpuinfo"); }

PinnedThreads::PinnedThreads(int threads) {
  CPU_ZERO(&before_);
  if (omp_get_proc_bind() != omp_proc_bind_false || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  const std::vector<int> processors = usable_processors();
  if (threads < 2 || static_cast<int>(processors.size()) != threads)
    return;  // a single thread on one processor cannot move
  threads_ = threads;
  mark_ = ++last_mark;
  int refused = 0;
#pragma omp parallel num_threads(threads) reduction(+ : refused)
  {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processors[static_cast<std::size_t>(omp_get_thread_num())], &own);
    const bool is_pinned = sched_setaffinity(0, sizeof own, &own) == 0;
    if (!is_pinned) ++refused;
    mark_of_thread = mark_;
    pinned_to = is_pinned ? own : before_;
  }
  if (refused > 0) release();
}

void PinnedThreads::release_if_threads_changed() {
  if (threads_ == 0) return;
  int changed = 0;
#pragma omp parallel num_threads(threads_) reduction(+ : changed)
  if (mark_of_thread != mark_) ++changed;
  if (changed > 0) release();
}

void PinnedThreads::release() {
  if (threads_ == 0) return;
  // An affinity set from outside (taskset) is kept and applied to all threads, so that the caller can detect it.
  cpu_set_t after = before_;
#pragma omp parallel num_threads(threads_)
  {
    cpu_set_t now;
    if (mark_of_thread == mark_ && sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &pinned_to) == 0) {
#pragma omp critical
      after = now;
    }
  }
#pragma omp parallel num_threads(threads_)
  (void)sched_setaffinity(0, sizeof after, &after);
  threads_ = 0;
}

}  // namespace gpubench::cpu

#include "harness/run/process_state.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "harness/core/file/descriptor.h"

namespace gpubench {
namespace {

constexpr double allowed_s = 0.05;
constexpr double allowed_share = 0.01;
constexpr double future_s = 1e-3;

struct Mapping {
  std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
  std::string path;
};

std::vector<Mapping> mappings_of(pid_t process) {
  std::vector<Mapping> mappings;
  std::ifstream file(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Mapping one;
    char dash = 0;
    std::string permissions, device;
    words >> std::hex >> one.begin >> dash >> one.end >> permissions >> one.offset >> device >> std::dec >> one.inode;
    if (words >> std::ws) std::getline(words, one.path);
    mappings.push_back(std::move(one));
  }
  return mappings;
}

bool read_at(int fd, std::uint64_t from, std::vector<char>& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::uint64_t> first_difference(const std::vector<char>& a, const std::vector<char>& b) {
  if (std::memcmp(a.data(), b.data(), std::min(a.size(), b.size())) == 0) return std::nullopt;
  return static_cast<std::uint64_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string told(const std::string& file, std::uint64_t at) {
  return fmt::format("the worker's code was changed in memory: {} at {:#x}", file, at);
}

/// Compares the executable segments of an ELF file mapped at `base`, independent of the current mappings.
std::string changed_file(int memory, const Descriptor& file, const std::string& name, std::uint64_t base) {
  Elf64_Ehdr header{};
  if (::pread(file.get(), &header, sizeof header, 0) != sizeof header) return {};
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(header.e_phoff + static_cast<std::uint64_t>(i) * sizeof segment);
    if (::pread(file.get(), &segment, sizeof segment, at) != sizeof segment) return {};
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t from = header.e_type == ET_DYN ? base + segment.p_vaddr : segment.p_vaddr;
    std::vector<char> on_disk(segment.p_filesz), mapped(segment.p_filesz);
    if (!read_at(file.get(), segment.p_offset, on_disk) || !read_at(memory, from, mapped)) return {};
    if (const auto differs = first_difference(on_disk, mapped)) return told(name, segment.p_offset + *differs);
  }
  return {};
}

/// All processes of a kernel have the same vDSO.
std::string changed_vdso(int memory, const Mapping& mapping, const std::vector<Mapping>& own) {
  const auto ours = std::find_if(own.begin(), own.end(), [](const Mapping& one) { return one.path == "[vdso]"; });
  if (ours == own.end() || ours->end - ours->begin != mapping.end - mapping.begin) return {};
  std::vector<char> expected(mapping.end - mapping.begin), mapped(expected.size());
  std::memcpy(expected.data(), reinterpret_cast<const char*>(::getauxval(AT_SYSINFO_EHDR)), expected.size());
  if (!read_at(memory, mapping.begin, mapped)) return {};
  const auto differs = first_difference(expected, mapped);
  return differs ? told("the vDSO", *differs) : "";
}

Descriptor opened(const std::string& path) { return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

bool is_c_library(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libc-");
}

/// The mapped file, unless an upgrade has replaced it.
Descriptor mapped_file(const Mapping& mapping) {
  Descriptor file = opened(mapping.path);
  struct stat facts {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0 || facts.st_ino != mapping.inode) return Descriptor();
  return file;
}

}  // namespace

std::string hidden_code_reason(pid_t process) {
  const Descriptor memory = opened(fmt::format("/proc/{}/mem", process));
  return memory.get() >= 0 ? "" : std::strerror(errno);
}

std::string changed_code(pid_t process) {
  const Descriptor memory = opened(fmt::format("/proc/{}/mem", process));
  if (memory.get() < 0) return {};
  const Descriptor program = opened(fmt::format("/proc/{}/exe", process));  // also if its file was replaced
  struct stat own {};
  if (program.get() < 0 || ::fstat(program.get(), &own) != 0) return {};
  const std::vector<Mapping> here = mappings_of(::getpid());
  std::string changed;
  for (const Mapping& mapping : mappings_of(process)) {
    if (!changed.empty()) break;
    if (mapping.path == "[vdso]") {
      changed = changed_vdso(memory.get(), mapping, here);
    } else if (mapping.offset == 0 && mapping.inode == own.st_ino) {
      changed = changed_file(memory.get(), program, mapping.path, mapping.begin);
    } else if (mapping.offset == 0 && mapping.inode != 0 && is_c_library(mapping.path)) {
      const Descriptor file = mapped_file(mapping);
      if (file.get() >= 0) changed = changed_file(memory.get(), file, mapping.path, mapping.begin);
    }
  }
  return changed;
}

std::optional<std::string> WorkerClock::fault(double sent_s, double empty_s, double now_s) {
  if (!first_s_) first_s_ = now_s;
  if (sent_s > now_s + future_s)
    return fmt::format("the worker's clock differs from the supervisor's: it is {:.3g} s ahead", sent_s - now_s);
  const double late_s = empty_s - sent_s;
  const bool late = late_s > allowed_s + allowed_share * (now_s - *first_s_);
  const bool twice = late && late_before_;
  late_before_ = late;
  if (!twice) return std::nullopt;
  return fmt::format("the worker's clock differs from the supervisor's: it is {:.3g} s behind", late_s);
}

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gpubench

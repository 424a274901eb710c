#include "tests/fakes/io_faults/io_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace {

using gpubench::Fault;

struct State {
  std::string folder;
  gpubench::IoFaults faults;
  std::set<int> open;  ///< descriptors of files in the folder
  int count = 0;
  bool struck_removal = false;
};

State* state = nullptr;
std::mutex guard;  // several threads read files

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_ours(const char* path) {
  const std::string_view text(path);
  return state != nullptr && (!text.starts_with("/") || text.starts_with(state->folder));
}
bool is_ours(int fd) {
  const std::lock_guard lock(guard);
  return state != nullptr && state->open.contains(fd);
}
void take(int fd) {
  const std::lock_guard lock(guard);
  state->open.insert(fd);
}
void forget(int fd) {
  const std::lock_guard lock(guard);
  state->open.erase(fd);
}

bool strikes(bool removal = false, bool* halved = nullptr) {
  const std::lock_guard lock(guard);
  const int number = ++state->count;
  const bool hit = number == state->faults.first || (state->faults.and_after && number > state->faults.first);
  if (hit && state->faults.fault == Fault::killed) ::raise(SIGKILL);
  if (halved != nullptr) *halved = hit && state->faults.fault == Fault::short_count;
  if (!hit || state->faults.fault != Fault::error) return false;
  state->struck_removal = state->struck_removal || removal;
  errno = state->faults.error;
  return true;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    std::va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  const bool counts = is_ours(path);
  if (counts && strikes()) return -1;
  static auto* real = next<int(const char*, int, ...)>("open");
  const int fd = real(path, flags, mode);
  if (counts && fd >= 0) take(fd);
  return fd;
}

// closedir() closes folders that are listed unseen.
int openat(int folder, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    std::va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  const bool counts = is_ours(path);
  if (counts && strikes()) return -1;
  static auto* real = next<int(int, const char*, int, ...)>("openat");
  const int fd = real(folder, path, flags, mode);
  if (counts && fd >= 0 && (flags & O_DIRECTORY) == 0) take(fd);
  return fd;
}

FILE* fopen64(const char* path, const char* mode) {
  const bool counts = is_ours(path);
  if (counts && strikes()) return nullptr;
  static auto* real = next<FILE*(const char*, const char*)>("fopen64");
  FILE* file = real(path, mode);
  if (counts && file != nullptr) take(::fileno(file));
  return file;
}

int fclose(FILE* file) {
  static auto* real = next<int(FILE*)>("fclose");
  if (!is_ours(::fileno(file))) return real(file);
  forget(::fileno(file));
  const bool fails = strikes();
  const int result = real(file);
  if (!fails) return result;
  errno = state->faults.error;
  return EOF;
}

ssize_t read(int fd, void* data, size_t bytes) {
  static auto* real = next<ssize_t(int, void*, size_t)>("read");
  if (!is_ours(fd)) return real(fd, data, bytes);
  bool halved = false;
  if (strikes(false, &halved)) return -1;
  return real(fd, data, halved && bytes > 1 ? bytes / 2 : bytes);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  static auto* real = next<ssize_t(int, const void*, size_t)>("write");
  if (!is_ours(fd)) return real(fd, data, bytes);
  bool halved = false;
  if (strikes(false, &halved)) return -1;
  return real(fd, data, halved && bytes > 1 ? bytes / 2 : bytes);
}

ssize_t writev(int fd, const iovec* pieces, int count) {
  static auto* real = next<ssize_t(int, const iovec*, int)>("writev");
  return is_ours(fd) && strikes() ? -1 : real(fd, pieces, count);
}

int fsync(int fd) {
  static auto* real = next<int(int)>("fsync");
  return is_ours(fd) && strikes() ? -1 : real(fd);
}

int fdatasync(int fd) {
  static auto* real = next<int(int)>("fdatasync");
  return is_ours(fd) && strikes() ? -1 : real(fd);
}

int ftruncate(int fd, off_t bytes) noexcept {
  static auto* real = next<int(int, off_t)>("ftruncate");
  return is_ours(fd) && strikes() ? -1 : real(fd, bytes);
}

int fchmod(int fd, mode_t mode) noexcept {
  static auto* real = next<int(int, mode_t)>("fchmod");
  return is_ours(fd) && strikes() ? -1 : real(fd, mode);
}

int close(int fd) {
  static auto* real = next<int(int)>("close");
  if (!is_ours(fd)) return real(fd);
  forget(fd);
  const bool fails = strikes();
  const int result = real(fd);
  if (!fails) return result;
  errno = state->faults.error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  static auto* real = next<int(const char*, const char*)>("rename");
  return is_ours(from) && strikes() ? -1 : real(from, to);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  static auto* real = next<int(int, const char*, int, const char*)>("renameat");
  return is_ours(from) && strikes() ? -1 : real(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static auto* real = next<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return is_ours(from) && strikes() ? -1 : real(from_folder, from, to_folder, to, flags);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  static auto* real = next<int(int, const char*, int, const char*, int)>("linkat");
  return is_ours(from) && strikes() ? -1 : real(from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  static auto* real = next<int(const char*)>("unlink");
  return is_ours(path) && strikes(true) ? -1 : real(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* real = next<int(int, const char*, int)>("unlinkat");
  return is_ours(path) && strikes(true) ? -1 : real(folder, path, flags);
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  static auto* real = next<int(int, const char*, mode_t)>("mkdirat");
  return is_ours(path) && strikes() ? -1 : real(folder, path, mode);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* real = next<int(const char*, mode_t)>("mkdir");
  return is_ours(path) && strikes() ? -1 : real(path, mode);
}
}

namespace gpubench {
namespace {

State the_state;

}  // namespace

FailingIo::FailingIo(const std::filesystem::path& folder, const IoFaults& faults) {
  the_state = State{};
  the_state.folder = folder.string();
  the_state.faults = faults;
  state = &the_state;
}
FailingIo::~FailingIo() { state = nullptr; }
bool FailingIo::struck() const { return the_state.count >= the_state.faults.first; }
bool FailingIo::struck_a_removal() const { return the_state.struck_removal; }

}  // namespace gpubench

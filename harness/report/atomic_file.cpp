#include "harness/report/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "harness/core/descriptor.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_as_taken(const std::string& path) {
  throw WriteError(fmt::format("{}: is there already; --force replaces it", visible(path)));
}

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// What a path leads to in /proc: nothing, a descriptor of this process, or something of another one.
struct ProcEntry {
  bool found = false;
  int own_descriptor = -1;
  bool by_others = false;  ///< through a link that neither this user nor root made
};

bool is_made_by_others(const fs::path& link) {
  struct stat status {};
  return ::lstat(link.c_str(), &status) == 0 && status.st_uid != 0 && status.st_uid != ::geteuid();
}

// Follows links one by one: the last one, /proc/PID/fd/N, can be told from an ordinary link only by its place.
ProcEntry proc_entry(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel has it
  const std::string own = fmt::format("/proc/{}/", ::getpid());
  fs::path at = path;
  ProcEntry entry;
  for (int links = 0; links < most_links; ++links) {
    std::error_code error;
    const fs::path folder = fs::canonical(folder_of(at.string()), error);
    if (error) return {};
    const std::string name = at.filename().string();
    const std::string place = folder.string() + "/";
    if (place.starts_with(own) && folder.filename() == "fd") {
      int number = -1;
      const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
      entry.own_descriptor = fault == std::errc() && end == name.data() + name.size() ? number : -1;
    }
    entry.found = place.starts_with("/proc/");
    if (entry.found) break;
    const fs::path target = fs::read_symlink(folder / name, error);
    if (error) break;
    // In /dev nobody else makes links; in a container's user namespace its own have an owner that is none here.
    entry.by_others = entry.by_others || (folder != "/dev" && is_made_by_others(folder / name));
    at = target.is_absolute() ? target : folder / target;
  }
  return entry;
}

// A name that is written through, not renamed over, must not lead to what somebody else has chosen: as root, a link to
// /proc/PID/fd/N of another user's process would open whatever that process can read.
int own_descriptor_of(const std::string& path) {
  const ProcEntry entry = proc_entry(path);
  if (entry.by_others) throw WriteError(fmt::format("{}: leads through a link that another user made", visible(path)));
  if (entry.found && entry.own_descriptor < 0)
    throw WriteError(fmt::format("{}: leads to a file of the kernel, or of another process", visible(path)));
  return entry.own_descriptor;
}

// Written to where it stands: by a copy of the descriptor, since opening it anew would begin at the start of a file
// that others are writing.
int open_through(const std::string& path) {
  const int own = own_descriptor_of(path);
  return own >= 0 ? ::fcntl(own, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
}

void write_synced(Descriptor& file, std::string_view content, const std::string& path) {
  write_all(file.get(), content, path);
  if (retried([&] { return ::fsync(file.get()); }) != 0) cannot_write(path, "sync", errno);
  // Interrupted or not, it is closed, and its content is on the disk already.
  if (file.close() != 0 && errno != EINTR) cannot_write(path, "close", errno);
}

std::string unforeseen_name() {
  std::uint64_t number = 0;
  if (retried([&] { return ::getrandom(&number, sizeof number, 0); }) != sizeof number)
    throw WriteError("cannot get random bytes for the name of a file");
  return fmt::format("{:016x}", number);
}

// A file of our own; removed unless it was kept.
class NewFile {
 public:
  /// `target`: the path that messages name.
  NewFile(std::string target, const std::string& start, std::string_view end, std::string_view attempt)
      : target_(std::move(target)),
        name_(fmt::format("{}{}{}", start, unforeseen_name(), end)),
        file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    if (file_.get() < 0) cannot_write(target_, attempt, errno);
  }
  NewFile(const NewFile&) = delete;  // owns a file
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!kept_) ::unlink(name_.c_str());
  }

  void set_mode(unsigned mode) {
    if (mode != 0600 && ::fchmod(file_.get(), mode) != 0) cannot_write(target_, "set its permissions", errno);
  }
  void write(std::string_view content) { write_synced(file_, content, target_); }
  std::string keep() {
    kept_ = true;
    return name_;
  }
  void keep_as_target(bool replace) {
    if (replace ? ::rename(name_.c_str(), target_.c_str()) != 0 : !moved_to_free_name()) {
      if (!replace && errno == EEXIST) fail_as_taken(target_);
      cannot_write(target_, "rename the finished file to it", errno);
    }
    kept_ = true;
  }

 private:
  // False with errno. Some network file systems know no rename that replaces nothing, but hard links.
  [[nodiscard]] bool moved_to_free_name() const {
    if (::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    return ::link(name_.c_str(), target_.c_str()) == 0 && ::unlink(name_.c_str()) == 0;
  }

  std::string target_;
  std::string name_;
  Descriptor file_;
  bool kept_ = false;
};

// A short name of its own: the target's may be as long as names can be.
std::string temporary_start(const std::string& path) { return (fs::path(folder_of(path)) / ".gpubench-").string(); }

void refuse_folder(const std::string& path) {
  if (fs::is_directory(path)) cannot_write(path, "write a file there", EISDIR);
}

bool is_taken(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

void cannot_write(const std::string& path, std::string_view attempt, int error) {
  throw WriteError(fmt::format("{}: cannot {}: {}", visible(path), attempt, std::strerror(error)));
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = retried([&] { return ::write(fd, content.data(), content.size()); });
    if (written < 0) cannot_write(path, "write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool is_written_through(const std::string& path) {
  struct stat status {};
  return proc_entry(path).found || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode));
}

void write_atomically(const std::string& path, std::string_view content, const WriteRules& rules) {
  refuse_folder(path);
  if (is_written_through(path)) {
    const Descriptor file(open_through(path));
    if (file.get() < 0) cannot_write(path, "open for writing", errno);
    write_all(file.get(), content, path);
    return;
  }
  NewFile temporary(path, temporary_start(path), ".tmp", "create a file next to it");
  temporary.set_mode(rules.mode);
  temporary.write(content);
  temporary.keep_as_target(rules.replace);
  sync_folder_of(path);
}

void require_writable(const std::string& path, const WriteRules& rules) {
  refuse_folder(path);
  if (is_written_through(path)) {
    const int own = own_descriptor_of(path);
    if (own < 0) {
      if (::access(path.c_str(), W_OK) != 0) cannot_write(path, "open for writing", errno);
      return;
    }
    const int flags = ::fcntl(own, F_GETFL);
    if (flags < 0) cannot_write(path, "write to this descriptor", errno);
    if ((flags & O_ACCMODE) == O_RDONLY) cannot_write(path, "write to this descriptor", EBADF);
    return;
  }
  if (!rules.replace && is_taken(path)) fail_as_taken(path);
  const NewFile probe(path, temporary_start(path), ".tmp", "create a file next to it");
}

std::string write_new_file(const std::string& folder, std::string_view start, std::string_view end,
                           std::string_view content) {
  NewFile file(folder, (fs::path(folder) / start).string(), end, "create a file there");
  file.write(content);
  return file.keep();
}

void sync_folder_of(const std::string& path) {
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_write(path, "create the folder", error.value());
  if (!fs::is_directory(path)) cannot_write(path, "create the folder", ENOTDIR);
}

}  // namespace gpubench

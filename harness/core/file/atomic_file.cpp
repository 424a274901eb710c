#include "harness/core/file/atomic_file.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>

#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_already_exists(const std::string& path) {
  throw WriteError(fmt::format("{}: is there already; --force replaces it", visible(path)));
}

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The target of a path in /proc: none, a descriptor of this process, or something of another process.
struct ProcEntry {
  bool found = false;
  int own_descriptor = -1;
  bool by_others = false;  ///< through a link made by neither this user nor root
};

bool is_made_by_others(const fs::path& link) {
  struct stat status {};
  return ::lstat(link.c_str(), &status) == 0 && status.st_uid != 0 && status.st_uid != ::geteuid();
}

// Follows links one by one: only its place distinguishes /proc/PID/fd/N from an ordinary link.
ProcEntry proc_entry(const std::string& path) {
  constexpr int max_links = 40;  // the kernel's limit
  const std::string own = fmt::format("/proc/{}/", ::getpid());
  fs::path at = path;
  ProcEntry entry;
  for (int links = 0; links < max_links; ++links) {
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
    // In /dev only root makes links; a container's user namespace hides the owner of /dev's links.
    entry.by_others = entry.by_others || (folder != "/dev" && is_made_by_others(folder / name));
    at = target.is_absolute() ? target : folder / target;
  }
  return entry;
}

std::string held_path(const std::string& path, const WriteRules& rules) {
  return rules.folder == AT_FDCWD ? path : fmt::format("/proc/self/fd/{}/{}", rules.folder, rules.name_of(path));
}

// A target that is written directly must not be another user's choice: as root, a link to /proc/PID/fd/N of another
// user's process would open any file that the process can read.
int own_descriptor_of(const std::string& path, const WriteRules& rules) {
  const ProcEntry entry = proc_entry(held_path(path, rules));
  if (entry.by_others)
    throw WriteError(fmt::format("{}: the path goes through a link that another user made", visible(path)));
  if (entry.found && entry.own_descriptor < 0)
    throw WriteError(fmt::format("{}: the path leads to a file of the kernel or of another process", visible(path)));
  return entry.own_descriptor;
}

// Written by a copy of the descriptor: opening the file again would start at offset 0 of a file that others write.
int open_through(const std::string& path, const WriteRules& rules) {
  const int own = own_descriptor_of(path, rules);
  if (own >= 0) return ::fcntl(own, F_DUPFD_CLOEXEC, 0);
  return ::openat(rules.folder, rules.name_of(path).c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
}

void write_synced(Descriptor& file, std::string_view content, const std::string& path) {
  write_all(file.get(), content, path);
  if (retried([&] { return ::fsync(file.get()); }) != 0) cannot_write(path, "sync", errno);
  // Even if interrupted, it is closed and its content is on the disk.
  if (file.close() != 0 && errno != EINTR) cannot_write(path, "close", errno);
}

constexpr std::string_view temporary_start = ".gpubench-";  // short, to leave room for long target names
constexpr std::string_view temporary_end = ".tmp";

std::string unforeseen_name() {
  std::uint64_t number = 0;
  if (retried([&] { return ::getrandom(&number, sizeof number, 0); }) != sizeof number)
    throw WriteError("cannot get random bytes for a file name");
  return fmt::format("{:016x}", number);
}

bool is_temporary(std::string_view name) {
  constexpr std::size_t number_digits = 16;  // of unforeseen_name()
  return name.size() == temporary_start.size() + number_digits + temporary_end.size() &&
         name.starts_with(temporary_start) && name.ends_with(temporary_end) &&
         name.substr(temporary_start.size(), number_digits).find_first_not_of("0123456789abcdef") == name.npos;
}

// A writer holds a lock on its temporary file; a kill releases it. The minute covers files before their lock, and file
// systems whose locks are local to one machine.
bool is_leftover(int folder, const char* name) {
  constexpr std::time_t grace_s = 60;
  struct stat status {};
  if (!is_temporary(name) || ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || std::time(nullptr) - status.st_mtime < grace_s)
    return false;
  // NFS requires write access for an exclusive lock.
  const Descriptor file(::openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_leftovers(int folder) {
  const int listed = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (listed < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(listed), ::closedir);
  if (!list) {
    ::close(listed);
    return;
  }
  while (const dirent* entry = ::readdir(list.get())) {
    if (is_leftover(folder, entry->d_name)) ::unlinkat(folder, entry->d_name, 0);
  }
}

// A file's name and folder; the folder stays the same from check to rename.
struct Place {
  Place(const std::string& file, const WriteRules& rules)
      : path(file),
        name(fs::path(file).filename().string()),
        opened(rules.folder == AT_FDCWD ? ::open(folder_of(file).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1),
        folder(rules.folder == AT_FDCWD ? opened.get() : rules.folder) {
    if (folder < 0) cannot_write(path, "create a file next to it", errno);
  }
  [[nodiscard]] bool is_taken() const {
    struct stat status {};
    return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  }
  std::string path, name;
  Descriptor opened;
  int folder;
};

// A new file; removed unless kept.
class NewFile {
 public:
  /// `target`: the path that messages name. `folder` outlives the file.
  NewFile(int folder, std::string target, std::string_view start, std::string_view end, std::string_view attempt)
      : folder_(folder),
        target_(std::move(target)),
        name_(fmt::format("{}{}{}", start, unforeseen_name(), end)),
        file_(::openat(folder, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    if (file_.get() < 0) cannot_write(target_, attempt, errno);
    // For is_leftover(), until the file has its name; not every file system has locks.
    lock_ = Descriptor(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
    (void)::flock(lock_.get(), LOCK_EX | LOCK_NB);
  }
  NewFile(const NewFile&) = delete;  // owns a file
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!kept_) ::unlinkat(folder_, name_.c_str(), 0);
  }

  void set_mode(unsigned mode) {
    if (mode != 0600 && ::fchmod(file_.get(), mode) != 0) cannot_write(target_, "set its permissions", errno);
  }
  void write(std::string_view content) { write_synced(file_, content, target_); }
  std::string keep() {
    kept_ = true;
    return name_;
  }
  void keep_as(const std::string& name, bool replace) {
    if (replace ? ::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0 : !moved_to_free(name)) {
      if (!replace && errno == EEXIST) fail_already_exists(target_);
      cannot_write(target_, "rename the finished file to it", errno);
    }
    kept_ = true;
  }

 private:
  // False with errno. Some network file systems have no rename without replacement, only hard links.
  [[nodiscard]] bool moved_to_free(const std::string& name) const {
    if (::renameat2(folder_, name_.c_str(), folder_, name.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    return ::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) == 0 &&
           ::unlinkat(folder_, name_.c_str(), 0) == 0;
  }

  int folder_;
  Descriptor lock_;
  std::string target_;
  std::string name_;
  Descriptor file_;
  bool kept_ = false;
};

// Removes leftovers first, because the disk may be full.
NewFile temporary_in(const Place& place) {
  remove_leftovers(place.folder);
  return {place.folder, place.path, temporary_start, temporary_end, "create a file next to it"};
}

void refuse_folder(const std::string& path, const WriteRules& rules) {
  struct stat status {};
  if (::fstatat(rules.folder, rules.name_of(path).c_str(), &status, 0) == 0 && S_ISDIR(status.st_mode))
    cannot_write(path, "write a file there", EISDIR);
}

}  // namespace

void cannot_write(const std::string& path, std::string_view attempt, int error) {
  throw WriteError(fmt::format("{}: cannot {}: {}", visible(path), attempt, std::strerror(error)), error);
}

bool WriteError::is_disk_error() const { return error_ == ENOSPC || error_ == EDQUOT || error_ == EIO; }

std::string WriteRules::name_of(const std::string& path) const {
  return folder == AT_FDCWD ? path : fs::path(path).filename().string();
}

void HeldFolders::hold(const std::string& file) {
  const std::string path = folder_of(file);
  if (!folders_.contains(path)) folders_.emplace(path, open_folder(path, file));
}

void HeldFolders::hold(const std::string& file, Descriptor folder) {
  folders_.insert_or_assign(folder_of(file), std::move(folder));
}

WriteRules HeldFolders::rules(const std::string& file, WriteRules rules) const {
  if (const auto found = folders_.find(folder_of(file)); found != folders_.end()) rules.folder = found->second.get();
  return rules;
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = retried([&] { return ::write(fd, content.data(), content.size()); });
    if (written < 0) cannot_write(path, "write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool is_written_through(const std::string& path, const WriteRules& rules) {
  struct stat status {};
  return proc_entry(held_path(path, rules)).found ||
         (::fstatat(rules.folder, rules.name_of(path).c_str(), &status, 0) == 0 && !S_ISREG(status.st_mode));
}

void write_atomically(const std::string& path, std::string_view content, const WriteRules& rules) {
  refuse_folder(path, rules);
  if (is_written_through(path, rules)) {
    const Descriptor file(open_through(path, rules));
    if (file.get() < 0) cannot_write(path, "open for writing", errno);
    write_all(file.get(), content, path);
    return;
  }
  const Place place(path, rules);
  NewFile temporary = temporary_in(place);
  temporary.set_mode(rules.mode);
  temporary.write(content);
  temporary.keep_as(place.name, rules.replace);
  sync_folder_of(path, rules);
}

void require_writable(const std::string& path, const WriteRules& rules) {
  refuse_folder(path, rules);
  if (is_written_through(path, rules)) {
    const int own = own_descriptor_of(path, rules);
    if (own < 0) {
      if (::faccessat(rules.folder, rules.name_of(path).c_str(), W_OK, 0) != 0)
        cannot_write(path, "open for writing", errno);
      return;
    }
    const int flags = ::fcntl(own, F_GETFL);
    if (flags < 0) cannot_write(path, "write to this descriptor", errno);
    if ((flags & O_ACCMODE) == O_RDONLY) cannot_write(path, "write to this descriptor", EBADF);
    return;
  }
  const Place place(path, rules);
  if (!rules.replace && place.is_taken()) fail_already_exists(path);
  const NewFile probe = temporary_in(place);
}

std::string write_new_file(const std::string& folder, std::string_view start, std::string_view end,
                           std::string_view content) {
  constexpr std::string_view attempt = "create a file there";
  const Descriptor held(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (held.get() < 0) cannot_write(folder, attempt, errno);
  NewFile file(held.get(), folder, start, end, attempt);
  file.write(content);
  return (fs::path(folder) / file.keep()).string();
}

void sync_folder_of(const std::string& path, const WriteRules& rules) {
  const std::string name = rules.folder == AT_FDCWD ? folder_of(path) : ".";
  const Descriptor folder(::openat(rules.folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_write(path, "create the folder", error.value());
  if (!fs::is_directory(path)) cannot_write(path, "create the folder", ENOTDIR);
}

Descriptor open_folder(const std::string& path, const std::string& named) {
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  const fs::path wanted = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  const std::string name = wanted.has_filename() ? wanted.filename().string() : ".";
  const Descriptor above(::open(folder_of(wanted.string()).c_str(), flags));
  if (above.get() < 0) cannot_write(named, "open the folder", errno);
  Descriptor folder(::openat(above.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0) cannot_write(named, "open the folder", errno);
  if (S_ISLNK(status.st_mode)) {
    if (::geteuid() == 0 && status.st_uid != 0)
      throw WriteError(
          fmt::format("{}: cannot open the folder: it is a link of another user; name its target", visible(path)));
    std::string target(PATH_MAX, '\0');  // of the checked link: another may have its name by now
    if (::readlinkat(folder.get(), "", target.data(), target.size() - 1) < 0) target.clear();
    folder = Descriptor(::openat(above.get(), target.c_str(), flags));
    if (folder.get() < 0) cannot_write(named, "open the folder", errno);
  } else if (!S_ISDIR(status.st_mode)) {
    cannot_write(named, "open the folder", ENOTDIR);
  }
  return folder;
}

}  // namespace gpubench

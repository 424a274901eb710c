#include "harness/report/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view attempt, int error) {
  throw WriteError(fmt::format("{}: cannot {}: {}", visible(path), attempt, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;  // it closes what it holds, once
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A file next to `path` that nobody else has; removed again unless it was kept.
class Temporary {
 public:
  explicit Temporary(const std::string& path)
      : target_(path),
        name_(fmt::format("{}.{}.tmp", path, ::getpid())),
        file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
    if (file_.get() < 0) fail(path, "create a file next to it", errno);
  }
  Temporary(const Temporary&) = delete;  // owns a file
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!kept_) ::unlink(name_.c_str());
  }

  void write(std::string_view content) {
    write_all(file_.get(), content, target_);
    if (::fsync(file_.get()) != 0) fail(target_, "sync", errno);
    if (file_.close() != 0) fail(target_, "close", errno);
  }
  void keep() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail(target_, "rename the finished file to it", errno);
    kept_ = true;
  }

 private:
  std::string target_;
  std::string name_;
  Descriptor file_;
  bool kept_ = false;
};

void refuse_folder(const std::string& path) {
  if (std::filesystem::is_directory(path)) fail(path, "write a file there", EISDIR);
}

}  // namespace

void write_atomically(const std::string& path, std::string_view content) {
  refuse_folder(path);
  if (is_special(path)) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) fail(path, "open for writing", errno);
    write_all(file.get(), content, path);
    return;
  }
  Temporary temporary(path);
  temporary.write(content);
  temporary.keep();
  // The name must survive a power cut as well; a file system that cannot sync folders has written the file all the
  // same.
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

void require_writable(const std::string& path) {
  refuse_folder(path);
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0) fail(path, "open for writing", errno);
    return;
  }
  const Temporary probe(path);
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "create the folder", error.value());
  if (!std::filesystem::is_directory(path)) fail(path, "create the folder", ENOTDIR);
}

}  // namespace gpubench

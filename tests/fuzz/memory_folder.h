// A temporary folder for fuzz targets of file readers, in memory (/dev/shm) if possible.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace gpubench {

class MemoryFolder {
 public:
  MemoryFolder() {
    std::string name =
        (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/gpubench_fuzz.XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;  // owns the folder
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Writes `content` to the file `name`, creating missing folders; returns its path.
  std::string put(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace gpubench

#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpubench {

struct ShellResult {
  int status = -1;  ///< as of wait(); 0: exited with 0
  std::string out;
};

inline ShellResult shell(const std::string& command) {
  ShellResult result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> block{};
  for (std::size_t bytes = 0; (bytes = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    result.out.append(block.data(), bytes);
  result.status = ::pclose(pipe);
  return result;
}

inline bool is_installed(const std::string& program) {
  return shell("command -v " + program + " >/dev/null").status == 0;
}

class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& content)
      : path_(std::filesystem::temp_directory_path() / ("gpubench." + std::to_string(::getpid()) + "." + name)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace gpubench

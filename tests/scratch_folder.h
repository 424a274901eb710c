// A temporary current folder for tests that write files to it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace gpubench {

/// The current folder during a test; removed after it.
class ScratchFolder : public ::testing::Test {
 public:
  /// Empty for a missing file.
  static std::string content_of(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder_);
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::filesystem::path folder_ = ::testing::TempDir() + "gpubench_test." + std::to_string(::getpid());
};

}  // namespace gpubench

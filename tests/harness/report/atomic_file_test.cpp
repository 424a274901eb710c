#include "harness/report/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpubench {
namespace {

class AtomicFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_ = ::testing::TempDir() + "atomic_file_test." + std::to_string(::getpid());
};

TEST_F(AtomicFile, ReplacesTheOldFileAndLeavesNothingElse) {
  const std::filesystem::path path = folder_ / "report.json";
  write_atomically(path.string(), "old");
  write_atomically(path.string(), "the new content");
  EXPECT_EQ(content(path), "the new content");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, AFailureKeepsTheOldFileAndSaysWhy) {
  const std::filesystem::path path = folder_ / "missing" / "report.json";
  try {
    write_atomically(path.string(), "x");
    FAIL() << "was written";
  } catch (const WriteError& e) {
    EXPECT_EQ(std::string(e.what()), path.string() + ": cannot create a file next to it: No such file or directory");
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(AtomicFile, RequireWritableTriesAndCleansUp) {
  require_writable((folder_ / "report.json").string());
  EXPECT_EQ(files(), 0U);
  EXPECT_THROW(require_writable((folder_ / "missing" / "x").string()), WriteError);
  EXPECT_THROW(require_writable(folder_.string()), WriteError);
}

TEST_F(AtomicFile, ASymbolicLinkIsReplacedNotFollowed) {
  write_atomically((folder_ / "precious").string(), "precious");
  std::filesystem::create_symlink("precious", folder_ / "report.json");
  write_atomically((folder_ / "report.json").string(), "report");
  EXPECT_EQ(content(folder_ / "precious"), "precious");
  EXPECT_EQ(content(folder_ / "report.json"), "report");
}

TEST_F(AtomicFile, DevicesAreWrittenDirectly) {
  require_writable("/dev/null");
  write_atomically("/dev/null", "x");
  struct stat status {};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_THROW(write_atomically("/dev/full", "x"), WriteError);
}

TEST_F(AtomicFile, MakeFolderMakesParentsAndRefusesFiles) {
  make_folder((folder_ / "a" / "b").string());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "a" / "b"));
  make_folder((folder_ / "a" / "b").string());
  write_atomically((folder_ / "file").string(), "x");
  EXPECT_THROW(make_folder((folder_ / "file").string()), WriteError);
  EXPECT_THROW(make_folder((folder_ / "file" / "below").string()), WriteError);
}

}  // namespace
}  // namespace gpubench

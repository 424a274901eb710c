#include "harness/core/file/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/fakes/io_faults/io_faults.h"
#include "tests/scratch_folder.h"
#include "tests/thrown_text.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

constexpr WriteRules replacing{.replace = true};

class AtomicFile : public ScratchFolder {
 protected:
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
};

TEST_F(AtomicFile, ReplacesTheOldFileAndLeavesNothingElse) {
  const std::filesystem::path path = folder_ / "report.json";
  write_atomically(path.string(), "old");
  write_atomically(path.string(), "the new content", replacing);
  EXPECT_EQ(content_of(path), "the new content");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, AFailureKeepsTheOldFileAndReportsTheReason) {
  const std::filesystem::path path = folder_ / "missing" / "report.json";
  EXPECT_EQ(thrown_text<WriteError>([&] { write_atomically(path.string(), "x"); }),
            path.string() + ": cannot create a file next to it: No such file or directory");
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
  EXPECT_THROW(write_atomically((folder_ / "report.json").string(), "report"), WriteError);
  write_atomically((folder_ / "report.json").string(), "report", replacing);
  EXPECT_EQ(content_of(folder_ / "precious"), "precious");
  EXPECT_EQ(content_of(folder_ / "report.json"), "report");
}

TEST_F(AtomicFile, DevicesAreWrittenDirectly) {
  require_writable("/dev/null");
  write_atomically("/dev/null", "x");
  struct stat status {};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_THROW(write_atomically("/dev/full", "x"), WriteError);
}

TEST_F(AtomicFile, AFileThatIsThereIsKeptUnlessItMayBeReplaced) {
  const std::string path = (folder_ / "report.json").string();
  write_atomically(path, "hours of measuring");
  for (const auto& attempt : {+[](const std::string& at) { write_atomically(at, "x"); },
                              +[](const std::string& at) { require_writable(at); }})
    EXPECT_EQ(thrown_text<WriteError>([&] { attempt(path); }), path + ": is there already; --force replaces it");
  require_writable(path, replacing);
  EXPECT_EQ(content_of(path), "hours of measuring");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, ByDefaultOnlyItsOwnerReadsItForAnyUmask) {
  const mode_t before = ::umask(0);
  const auto mode_of = [](const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777U;
  };
  write_atomically((folder_ / "mine").string(), "x");
  ::umask(077);
  write_atomically((folder_ / "ours").string(), "x", {.mode = 0644});
  ::umask(before);
  EXPECT_EQ(mode_of(folder_ / "mine"), 0600U);
  EXPECT_EQ(mode_of(folder_ / "ours"), 0644U);
}

// In a container the next process often has the number of a killed one, which left its temporary file.
TEST_F(AtomicFile, LeftoversOfAnEarlierProcessWithTheSameNumberAreHarmless) {
  const std::filesystem::path path = folder_ / "report.json";
  std::ofstream(path.string() + "." + std::to_string(::getpid()) + ".tmp") << "stale";
  write_atomically(path.string(), "new");
  EXPECT_EQ(content_of(path), "new");
}

TEST_F(AtomicFile, ADescriptorOfThisProcessIsWrittenWhereItStandsAndItsLinkStays) {
  const std::filesystem::path target = folder_ / "redirected", link = folder_ / "stdout";
  const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "before ", 7), 7);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(fd), link);  // as /dev/stdout is one
  require_writable(link.string());
  write_atomically(link.string(), "report", replacing);
  write_atomically("/dev/fd/" + std::to_string(fd), " again", replacing);
  ::close(fd);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content_of(target), "before report again");
  EXPECT_EQ(files(), 2U);
}

TEST_F(AtomicFile, ADescriptorThatIsClosedOrForReadingIsRefused) {
  write_atomically((folder_ / "file").string(), "precious");
  const int fd = ::open((folder_ / "file").c_str(), O_RDONLY);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_THROW(require_writable(path, replacing), WriteError);
  EXPECT_THROW(write_atomically(path, "x", replacing), WriteError);
  ::close(fd);
  EXPECT_THROW(require_writable(path, replacing), WriteError);
  EXPECT_EQ(content_of(folder_ / "file"), "precious");
}

// As root, opening such a link would read what another user's process has open.
TEST_F(AtomicFile, ADescriptorOfAnotherProcessAndAnotherUsersLinkAreRefused) {
  std::filesystem::create_symlink("/proc/" + std::to_string(::getppid()) + "/fd/1", folder_ / "report.html");
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  const auto refused = [this](const char* name, const char* why) {
    const std::string path = (folder_ / name).string();
    for (const bool tried : {true, false}) {
      const std::string thrown = thrown_text<WriteError>(
          [&] { tried ? require_writable(path, replacing) : write_atomically(path, "x", replacing); });
      EXPECT_NE(thrown.find(why), std::string::npos) << thrown;
    }
  };
  refused("report.html", "the path leads to a file of the kernel or of another process");
  if (::geteuid() != 0) return;  // only root can give a link away
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(::lchown((folder_ / "null").c_str(), nobody, nobody), 0);
  refused("null", "the path goes through a link that another user made");
}

TEST_F(AtomicFile, APipeAndALinkToADeviceAreWrittenThroughAndStay) {
  const std::filesystem::path pipe = folder_ / "pipe", link = folder_ / "null";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_atomically(pipe.string(), "report", replacing);
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 6);
  ::close(reader);
  EXPECT_STREQ(text, "report");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::filesystem::create_symlink("/dev/null", link);
  write_atomically(link.string(), "x", replacing);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(is_written_through(pipe.string()) && is_written_through(link.string()));
  EXPECT_FALSE(is_written_through((folder_ / "file").string()));
}

TEST_F(AtomicFile, AFullDiskIsAnErrorAndNoSignal) {
  EXPECT_THROW(write_atomically("/dev/full", "x"), WriteError);
  const std::string path = write_new_file(folder_.string(), "lost-", ".json", "report");
  EXPECT_EQ(content_of(path), "report");
  EXPECT_THROW((void)write_new_file((folder_ / "missing").string(), "lost-", ".json", "x"), WriteError);
}

// Each operation fails once, and on a full disk with all later ones: the name holds the complete old or new content,
// and nothing else is left unless the removal failed.
TEST_F(AtomicFile, WhicheverOperationFailsTheFileIsTheOldOrTheNewOne) {
  const std::string path = (folder_ / "report.json").string();
  int injected = 0;
  for (const bool replace : {true, false}) {
    for (const auto& [fault, error, after] : {std::tuple{Fault::error, ENOSPC, false},
                                              {Fault::error, ENOSPC, true},
                                              {Fault::error, EIO, false},
                                              {Fault::error, EINVAL, false},
                                              {Fault::short_count, 0, false}}) {
      for (int k = 1;; ++k) {
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
        if (replace) write_atomically(path, "old");
        bool thrown = false, struck = false, left = false;
        {
          const FailingIo io(folder_, {k, after, error, fault});
          try {
            write_atomically(path, "the new one", {.replace = replace});
          } catch (const WriteError&) {
            thrown = true;
          }
          struck = io.struck();
          left = io.struck_a_removal();
        }
        if (!struck) {
          EXPECT_GT(k, 3) << "open, write, sync, close and rename were to be counted";
          break;
        }
        ++injected;
        const std::string expected = !thrown ? "the new one" : replace ? "old" : "";
        EXPECT_EQ(content_of(path), expected) << "operation " << k << ", error " << error;
        EXPECT_TRUE(left || files() == (expected.empty() ? 0U : 1U)) << "operation " << k << ", error " << error;
        EXPECT_TRUE(!thrown || fault != Fault::short_count);
      }
    }
  }
  tell_count("I/O faults injected", injected);
  EXPECT_GE(injected, 30);
}

// Another user can do this where root writes.
TEST_F(AtomicFile, AHeldFolderGetsTheFileThoughALinkTakesItsPlace) {
  const std::string path = (folder_ / "o" / "report.json").string();
  make_folder((folder_ / "o").string());
  make_folder((folder_ / "victim").string());
  HeldFolders folders;
  folders.hold(path);
  std::filesystem::rename(folder_ / "o", folder_ / "moved");
  std::filesystem::create_directory_symlink("victim", folder_ / "o");

  require_writable(path, folders.rules(path, {}));
  write_atomically(path, "report", folders.rules(path, {}));

  EXPECT_EQ(content_of(folder_ / "moved" / "report.json"), "report");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "victim"));
  EXPECT_THROW(require_writable(path, folders.rules(path, {})), WriteError);
}

TEST_F(AtomicFile, ALinkToAFolderIsFollowedUnlessRootMeetsAnotherUsers) {
  const std::string link = (folder_ / "link").string();
  make_folder((folder_ / "o").string());
  write_atomically((folder_ / "file").string(), "x");
  std::filesystem::create_directory_symlink("o", link);
  for (const std::string& path : {link, link + "/", link + "/."}) EXPECT_GE(open_folder(path, path).get(), 0) << path;
  for (const char* path : {"file", "missing"})
    EXPECT_THROW((void)open_folder((folder_ / path).string(), path), WriteError) << path;
  if (::geteuid() != 0) return;  // only root can give a link away
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(::lchown(link.c_str(), nobody, nobody), 0);
  for (const std::string& path : {link, link + "/"}) EXPECT_THROW((void)open_folder(path, path), WriteError) << path;
}

TEST_F(AtomicFile, LeftoversOfKilledProcessesAreRemovedButNoFileInUse) {
  const auto old_file = [this](const char* name) {
    std::filesystem::path path = folder_ / name;
    std::ofstream(path) << "x";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
    return path;
  };
  const std::filesystem::path left = old_file(".gpubench-0123456789abcdef.tmp");
  const std::filesystem::path locked = old_file(".gpubench-00000000000000ff.tmp");
  (void)old_file(".gpubench-0123456789abcdeg.tmp");
  (void)old_file(".gpubench-0123456789abcdef.tmp~");
  std::ofstream(folder_ / ".gpubench-0123456789abcde0.tmp") << "another process creates it just now";
  const int writer = ::open(locked.c_str(), O_WRONLY);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);

  write_atomically((folder_ / "report.json").string(), "x");

  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(locked));
  EXPECT_EQ(files(), 5U);
  ::close(writer);
  require_writable((folder_ / "next.json").string());
  EXPECT_FALSE(std::filesystem::exists(locked));
  EXPECT_EQ(files(), 4U);
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

// Many suites in one process, in itself and in workers, hold constant resources.
//
// GPUBENCH_TRIAL_SUITES: their number (`ctest -C trials -L trials`: 1000).
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/harness/cli/captured.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

class LongProcess : public ScratchFolder {};

std::ptrdiff_t entries_of(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

struct Held {
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t temporaries = 0;
  bool has_children = false;
  double resident_bytes = 0.0;
};

Held held_now() {
  Held held;
  held.descriptors = entries_of("/proc/self/fd");
  held.temporaries = entries_of("tmp");
  held.has_children = ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
  ::malloc_trim(0);  // freed memory that malloc keeps does not count
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  held.resident_bytes = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return held;
}

TEST_F(LongProcess, SuiteAfterSuiteHoldsNoMoreMemoryDescriptorsFilesOrChildren) {
  std::filesystem::create_directory("tmp");
  const int suites = trial_count("GPUBENCH_TRIAL_SUITES", 10);
  const int warm = std::max(2, suites / 10);
  Held first;
  for (int i = 0; i < suites; ++i) {
    SCOPED_TRACE(i);
    for (const std::string isolate : {"on", "off"}) {
      Captured cli;
      cli.program = paths::sim_program;
      cli.variables["TMPDIR"] = "tmp";
      ASSERT_EQ(cli.run({"--tier", "smoke", "--isolate", isolate, "--out", "o", "--force", "--tuning-cache", "off"}), 0)
          << cli.err.str();
    }
    if (i + 1 < warm) continue;
    const Held held = held_now();
    if (i + 1 == warm) first = held;
    ASSERT_EQ(held.descriptors, first.descriptors);
    ASSERT_EQ(held.temporaries, 0);
    ASSERT_FALSE(held.has_children);
    ASSERT_EQ(entries_of("o"), 2);
#ifndef GPUBENCH_SANITIZED                         // a sanitizer keeps freed memory
    constexpr double some_pages = 256.0 * 1024.0;  // a few percent of ten megabytes
    ASSERT_LE(held.resident_bytes, 1.01 * first.resident_bytes + some_pages);
#endif
  }
  tell_count("suites in one process", 2 * suites);
}

}  // namespace
}  // namespace gpubench

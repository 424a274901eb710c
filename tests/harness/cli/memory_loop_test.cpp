// The k-th allocation fails, for all k: a verb succeeds, or prints one clear message with its exit code and leaves no
// partial file.
//
// GPUBENCH_TRIAL_ALLOCATION_STEP: tries every N-th k (`ctest -C trials -L trials`: 1).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "harness/cli/run_cli.h"
#include "tests/fakes/io_faults/io_faults.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"
#include "tests/trials.h"

namespace gpubench {
namespace memory_loop_test {

using ::testing::HasSubstr;

struct Command {
  Words words;
  std::string file;  ///< empty: only standard output
  std::string_view end;
  long steps = 1;  ///< tries one in this many of the usual steps: some commands allocate a hundred times as often
};

// Shared with the parent, which continues after the child's end.
struct Progress {
  long k = 0;
  long survived = 0;  ///< optional allocations, such as for faster sorting
  long told = 0;
  int odd_code = 0;
  char odd_text[2000] = {};
};

class MemoryLoop : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    for (const char* file : {"a.json", "b.json"})
      ASSERT_EQ(Captured().run({"--isolate", "off", "--tier", "smoke", "--filter", "last", "--json", file,
                                "--tuning-cache", "off", "--progress", "none"}),
                0);
  }
  void TearDown() override {
    ::munmap(progress_, sizeof(Progress));
    ScratchFolder::TearDown();
  }
  static Progress* shared() {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Progress;
  }
  [[noreturn]] void try_from(const Command& command, int usual_code, long step, bool and_after) const;
  long try_all(const Command& command, bool and_after);

  Progress* progress_ = shared();
};

// In a child: exit code 0 if there are fewer allocations, 3 if memory ended in a destructor.
void MemoryLoop::try_from(const Command& command, int usual_code, long step, bool and_after) const {
  ::dup2(::open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  end_cleanly_without_memory();
  for (;; progress_->k += step) {
    Captured cli;
    cli.variables["TMPDIR"] = "elsewhere";                     // does not exist: no fallback for the report
    for (std::ostringstream* stream : {&cli.out, &cli.err}) {  // preallocates: real streams need no memory to grow
      stream->str(std::string(std::size_t{1} << 16U, ' '));
      stream->seekp(0);
    }
    int code = 0;
    bool struck = false, told = false;
    {
      const FailingMemory memory(progress_->k, and_after);
      try {
        code = cli.run(command.words);
      } catch (const std::bad_alloc&) {  // outside run_cli(), or it had no memory for its message
        code = 3;
        told = true;
      }
      struck = memory.struck();
    }
    if (!struck) ::_exit(0);
    std::string said;
    for (std::ostringstream* stream : {&cli.out, &cli.err})
      said += stream->str().substr(0, static_cast<std::size_t>(stream->tellp()));
    const std::string written = command.file.empty() ? "" : content_of(command.file);
    const bool torn = !written.empty() && !written.ends_with(command.end);
    if (!written.empty()) ::unlink(command.file.c_str());
    if (torn) {
      progress_->odd_code = code;
      std::string_view("half of a file is left").copy(progress_->odd_text, sizeof progress_->odd_text - 1);
      ::_exit(98);
    }
    if (code == usual_code && !and_after) {
      ++progress_->survived;
    } else if ((code == 2 || code == 3) && (told || said.find("out of memory") != std::string::npos ||
                                            said.find("out of host memory") != std::string::npos)) {
      ++progress_->told;
    } else {
      progress_->odd_code = code;
      said.copy(progress_->odd_text, sizeof progress_->odd_text - 1);
      ::_exit(99);
    }
  }
}

long MemoryLoop::try_all(const Command& command, bool and_after) {
  const long step = command.steps * trial_count("GPUBENCH_TRIAL_ALLOCATION_STEP", 41);
  Captured undisturbed;
  const int usual_code = undisturbed.run(command.words);
  if (!command.file.empty()) {
    EXPECT_TRUE(content_of(command.file).ends_with(command.end)) << undisturbed.err.str();
    ::unlink(command.file.c_str());
  }
  *progress_ = Progress{.k = 1};
  long in_destructors = 0;
  for (;; progress_->k += step, ++in_destructors) {
    const pid_t pid = ::fork();
    if (pid == 0) try_from(command, usual_code, step, and_after);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3)
        << "allocation " << progress_->k << ": status " << status << ", code " << progress_->odd_code << ": "
        << progress_->odd_text;
    EXPECT_THAT(content_of("stderr.txt"), HasSubstr("out of memory"));
    if (HasFailure()) break;
  }
  EXPECT_GT(progress_->told, 0);
  return progress_->survived + progress_->told + in_destructors;
}

// One of 41 allocations of each verb; all of them as a trial.
TEST_F(MemoryLoop, EndsWithOneClearMessageWhicheverAllocationFails) {
  for (const bool and_after : {false, true}) {
    for (const Command& command : std::vector<Command>{
             {{"validate", "a.json"}, "", ""},
             {{"compare", "a.json", "b.json"}, "", ""},
             {{"export", "--format", "csv", "a.json"}, "", ""},
             {{"gate", "--baseline", "a.json", "--candidate", "b.json", "--json", "gate.json"}, "gate.json", "}\n"},
             {{"report", "a.json", "-o", "page.html"}, "page.html", "</html>\n"},
             {{"run", "--isolate", "off", "--tier", "smoke", "--filter", "last", "--tuning-cache", "off", "--progress",
               "none", "--force", "--json", "r.json"},
              "r.json",
              "}\n",
              10}}) {
      SCOPED_TRACE(command.words.front() + (and_after ? ", and all after it" : ""));
      const long faults = try_all(command, and_after);
      tell_count("allocations failed in " + command.words.front(), static_cast<int>(faults));
    }
  }
}

}  // namespace memory_loop_test
}  // namespace gpubench

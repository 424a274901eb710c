// A driver that hangs, in each of its calls: callers continue, name the call and leave no process behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace hanging_driver_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HangingDriver : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words, const std::string& call, const std::string& wait_for = "",
                         const std::function<void(int)>& while_running = {}) {
    return run_child(Words{paths::sim_program} + words,
                     {{"LD_LIBRARY_PATH", paths::fake_driver_folders}, {"GPUBENCH_FAKE_HANG", call}}, wait_for,
                     while_running);
  }
  // In parallel, since each waits for its deadline.
  static std::map<std::string, ChildResult> run_each(const Words& words, const std::vector<std::string>& calls) {
    std::map<std::string, std::future<ChildResult>> running;
    for (const std::string& call : calls)
      running[call] = std::async(std::launch::async, [words, call] { return run(words, call); });
    std::map<std::string, ChildResult> results;
    for (auto& [call, result] : running) results[call] = result.get();
    return results;
  }
};

const std::vector<std::string> driver_calls{"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
                                            "cuDeviceGetAttribute"};

TEST_F(HangingDriver, IsToldByDoctorWhichGoesOn) {
  for (const auto& [call, result] : run_each("doctor --deadline 1", driver_calls)) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("the NVIDIA driver does not answer (" + call + ", 1 s)"));
    EXPECT_THAT(result.out, HasSubstr("backend sim starts"));
  }
}

TEST_F(HangingDriver, KeepsNoListAndNoRunFromTheOtherDevice) {
  for (const auto& [call, result] : run_each("list --tier smoke --deadline 1", driver_calls)) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("sim/last/n=8/f32/x1")) << call;
  }
  EXPECT_THAT(exits(0, run("--tier smoke --filter last --json x.json --deadline 1", "cuInit")).err,
              HasSubstr("device: sim (the NVIDIA driver does not answer (cuInit, 1 s))"));
  EXPECT_THAT(exits(3, run("--tier smoke --device cuda --deadline 1", "cuInit")).err,
              HasSubstr("--device cuda: the NVIDIA driver does not answer (cuInit, 1 s)"));
}

TEST_F(HangingDriver, IsToldOfItsManagementLibraryToo) {
  const std::map<std::string, std::string> told{{"nvmlInit", "nvmlInit"},
                                                {"nvmlSystemGetDriverVersion", "nvmlSystemGetDriverVersion"},
                                                {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex"},
                                                {"nvmlDeviceGetName", "reading GPU 0"},
                                                {"nvmlDeviceGetPowerUsage", "reading GPU 0"},
                                                {"nvmlShutdown", "nvmlShutdown"}};
  std::vector<std::string> calls;
  for (const auto& [call, words] : told) calls.push_back(call);
  for (const auto& [call, result] : run_each("doctor --deadline 1", calls)) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("NVML does not answer (" + told.at(call) + ", 1 s)")) << call;
  }
}

// Loading a library runs its constructors, which may call a driver; doctor loads it in a child.
TEST_F(HangingDriver, HangsNoDoctorInTheConstructorsOfTheModule) {
  const std::map<std::string, std::string> variables{{"LD_LIBRARY_PATH", paths::fake_driver_folders},
                                                     {"GPUBENCH_SIM_MODULE", paths::hanging_module},
                                                     {"GPUBENCH_FAKE_HANG", "constructor"}};
  EXPECT_THAT(exits(0, run_child({paths::sim_program, "doctor", "--deadline", "1"}, variables)).out,
              AllOf(HasSubstr("D107  the CUDA module does not answer (loading it, 1 s)"),
                    HasSubstr("the cuda backend does not start: it does not answer (opening the device, 1 s)"),
                    HasSubstr("backend sim starts")));
}

// run_child() returns when no process holds the child's standard error, so the hanging one has ended, too.
TEST_F(HangingDriver, IsLeftBehindByNoEndOfItsParent) {
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP})
    exits(128 + signal,
          run("doctor --deadline off", "cuInit", "hangs in cuInit", [signal](int pid) { ::kill(pid, signal); }));
}

// Waits until the program opens the pipe, writes nothing, then stops it.
TEST_F(HangingDriver, AndASilentPipeEndWithTheFirstSignal) {
  ASSERT_EQ(::mkfifo("silent", 0600), 0);
  for (const Words& words :
       {Words("validate silent"), {"compare", "silent", "silent"}, {"export", "--format", "csv", "silent"}}) {
    for (const int signal : {SIGTERM, SIGINT}) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        Words held = Words{paths::sim_program} + words;
        std::vector<char*> argv;
        for (std::string& word : held) argv.push_back(word.data());
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
      }
      const int writing = ::open("silent", O_WRONLY);  // returns when it is opened for reading
      ASSERT_GE(writing, 0);
      ::kill(pid, signal);
      int status = 0;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      ::close(writing);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << words.front() << " " << status;
    }
  }
}

}  // namespace hanging_driver_test
}  // namespace gpubench

#include "harness/run/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "harness/core/error.h"
#include "harness/run/timing.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks programs to declare it

namespace gpubench {
namespace {

constexpr double patience_s = 2.0;
constexpr int worker_input = 3;
constexpr int worker_output = 4;
constexpr int first_free = 10;  // where our ends are kept while 3 and 4 are given to the worker

FileDescriptor moved_up(int fd) {
  const FileDescriptor original(fd);
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, first_free);
  if (copy < 0)
    throw BackendError(fmt::format("could not duplicate a descriptor for a worker: {}", std::strerror(errno)));
  return FileDescriptor(copy);
}

// Sockets, not pipes: writing to one whose reader is gone can be told not to raise SIGPIPE.
std::pair<FileDescriptor, FileDescriptor> channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw BackendError(fmt::format("could not open a channel to a worker: {}", std::strerror(errno)));
  }
  FileDescriptor second(ends[1]);
  FileDescriptor first = moved_up(ends[0]);
  const int raw = ::fcntl(second.get(), F_DUPFD_CLOEXEC, first_free);
  if (raw < 0)
    throw BackendError(fmt::format("could not duplicate a descriptor for a worker: {}", std::strerror(errno)));
  return {std::move(first), FileDescriptor(raw)};
}

/// posix_spawn's two option objects, destroyed with their scope.
class SpawnOptions {
 public:
  SpawnOptions() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    std::swap(fd_, other.fd_);
  }
  return *this;
}

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

WorkerProcess::WorkerProcess(const WorkerCommand& command) {
  auto [our_write_end, its_read_end] = channel();
  auto [our_read_end, its_write_end] = channel();

  std::vector<std::string> words = command.argv;
  words.insert(words.end(),
               {"--worker-input", std::to_string(worker_input), "--worker-output", std::to_string(worker_output)});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  SpawnOptions options;
  ::posix_spawn_file_actions_addopen(&options.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&options.actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&options.actions, its_read_end.get(), worker_input);
  ::posix_spawn_file_actions_adddup2(&options.actions, its_write_end.get(), worker_output);
  // A group of its own: Ctrl-C at the terminal reaches the supervisor only, and all its children can be ended at once.
  ::posix_spawnattr_setpgroup(&options.attributes, 0);
  // Signals as in a fresh program, whatever the supervisor handles, ignores or blocks.
  sigset_t none;
  sigset_t usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGCHLD}) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&options.attributes, &none);
  ::posix_spawnattr_setsigdefault(&options.attributes, &usual);
  ::posix_spawnattr_setflags(&options.attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const int error = ::posix_spawnp(&pid_, argv.front(), &options.actions, &options.attributes, argv.data(), environ);
  if (error != 0) throw BackendError(fmt::format("could not start '{}': {}", words.front(), std::strerror(error)));
  to_worker_ = std::move(our_write_end);
  from_worker_ = std::move(our_read_end);
}

WorkerProcess::~WorkerProcess() {
  if (!ended_) dismiss();
}

void WorkerProcess::signal_group(int signal) const { ::kill(-pid_, signal); }

bool WorkerProcess::ended_within(double seconds) {
  const Stopwatch watch;
  while (!ended_) {
    const pid_t got = ::waitpid(pid_, &status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno != EINTR)) ended_ = true;
    if (ended_ || watch.seconds() >= seconds) break;
    ::poll(nullptr, 0, 5);
  }
  return ended_;
}

std::string WorkerProcess::reap() {
  if (!ended_within(patience_s)) {
    terminate();
    return "closed its pipe and did not end";
  }
  signal_group(SIGKILL);  // what it may have started itself
  return describe_status(status_);
}

void WorkerProcess::dismiss() {
  to_worker_.close();
  if (!ended_within(patience_s)) terminate();
}

void WorkerProcess::terminate() {
  if (ended_) return;
  signal_group(SIGTERM);
  if (!ended_within(patience_s)) {
    signal_group(SIGKILL);
    // A process in an uninterruptible wait for its device does not end even so; it is left behind, not waited for.
    (void)ended_within(patience_s);
  }
  ended_ = true;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace gpubench

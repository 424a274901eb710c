#include "harness/run/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr int first_free_descriptor = 20;  // higher than any descriptor number in ChildSetup
constexpr int look_ms = 2;
constexpr double patience_s = 2.0;
constexpr int unseen_end = 255 << 8;                         // status of a child if waitpid() failed
constexpr const char* short_spin = "GOMP_SPINCOUNT=100000";  // 2.5 ms on a Zen 4; 30000 costs it 1.4% when idle

std::vector<char*> environment_of(const ChildSetup& setup) {
  std::vector<char*> variables;
  bool chosen = false;  // the user has set how OpenMP's threads wait
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    chosen = chosen || text.starts_with("GOMP_SPINCOUNT=") || text.starts_with("OMP_WAIT_POLICY=");
    variables.push_back(*variable);
  }
  if (setup.yields && !chosen) variables.push_back(const_cast<char*>(short_spin));  // execve() doesn't write
  variables.push_back(nullptr);
  return variables;
}

// Runs between fork and exec: only async-signal-safe calls. `given`: the child's and this process's descriptors.
[[noreturn]] void become(char* const* words, char* const* variables, const ChildSetup& setup,
                         std::vector<std::pair<int, int>>& given, pid_t parent, int complaints) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent ended before the line above
  if (setup.leads_group) ::setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);  // the child may have children
  if (setup.usual_signals) {
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::sigaction(signal, &usual, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  bool ready = true;
  for (auto& [its, ours] : given) {
    ours = ::fcntl(ours, F_DUPFD_CLOEXEC, first_free_descriptor);
    ready = ready && ours >= 0;
  }
  for (const auto& [its, ours] : given) ready = ready && ::dup2(ours, its) >= 0;
  if (ready) ::execve(words[0], words, variables);
  const int error = errno;
  (void)!::write(complaints, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw BackendError(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup) {
  std::vector<std::string> held = argv;
  std::vector<char*> words;
  for (std::string& word : held) words.push_back(word.data());
  words.push_back(nullptr);
  const std::vector<char*> variables = environment_of(setup);
  std::vector<std::pair<int, int>> given(setup.descriptors.begin(), setup.descriptors.end());
  std::pair<Descriptor, Descriptor> ends = make_pipe();  // the child writes its error there; exec closes it
  Descriptor complaints(::fcntl(ends.second.get(), F_DUPFD_CLOEXEC, first_free_descriptor));
  const pid_t parent = ::getpid();
  const pid_t pid = complaints.get() < 0 ? -1 : ::fork();
  if (pid == 0) become(words.data(), variables.data(), setup, given, parent, complaints.get());
  int error = pid < 0 ? errno : 0;
  ends.second = Descriptor();
  complaints = Descriptor();
  if (pid > 0) (void)retried([&] { return ::read(ends.first.get(), &error, sizeof error); });
  if (error == 0) return pid;
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  throw BackendError(fmt::format("could not start '{}': {}", argv.front(), std::strerror(error)));
}

bool ChildEnd::within(double seconds) {
  const Stopwatch watch;
  while (!ended_) {
    const pid_t got = ::waitpid(pid_, &status_, WNOHANG);
    ended_ = got == pid_ || (got < 0 && errno != EINTR);
    if (ended_ && got != pid_) status_ = unseen_end;
    if (ended_ || watch.seconds() >= seconds) break;
    ::poll(nullptr, 0, look_ms);
  }
  return ended_;
}

namespace {

// The longest time that any thread of the process was ready to run without a processor, since that thread began
// (/proc/PID/task/TID/schedstat); 0 without schedstat.
double waited_for_processor_s(pid_t process) {
  double longest_ns = 0.0;
  for (const pid_t thread : threads_of(process)) {
    double ran_ns = 0.0;
    double waited_ns = 0.0;
    if (std::ifstream(fmt::format("/proc/{}/task/{}/schedstat", process, thread)) >> ran_ns >> waited_ns)
      longest_ns = std::max(longest_ns, waited_ns);
  }
  return longest_ns * 1e-9;
}

std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const pid_t thread : threads_of(::getpid())) {
    std::ifstream file(fmt::format("/proc/self/task/{}/children", thread));
    for (pid_t child = 0; file >> child;) all.push_back(child);
  }
  return all;
}

}  // namespace

Orphans::Orphans() : before_(children()) { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

Orphans::~Orphans() {
  // Each round may find children of those that the previous round killed.
  constexpr int rounds = 100;
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> left = children();
    std::erase_if(left, [this](pid_t child) { return std::ranges::find(before_, child) != before_.end(); });
    if (left.empty()) return;
    for (const pid_t child : left) ::kill(child, SIGKILL);
    for (const pid_t child : left) {
      if (!ChildEnd(child).within(patience_s)) before_.push_back(child);  // uninterruptible wait for its device
    }
  }
}

std::optional<long> memory_kills(std::istream& vmstat) {
  std::string key;
  for (long count = 0; vmstat >> key >> count;) {
    if (key == "oom_kill") return count;
  }
  return std::nullopt;
}

std::string describe_status(int status, std::optional<long> kills_before, std::optional<long> kills_after) {
  if (!WIFSIGNALED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const bool for_memory = WTERMSIG(status) == SIGKILL && kills_before && kills_after && *kills_after > *kills_before;
  return fmt::format("ended by signal {} ({}{})", WTERMSIG(status), ::strsignal(WTERMSIG(status)),
                     for_memory ? "; the kernel's out-of-memory killer was active" : "");
}

namespace {

std::optional<long> memory_kills_now() {
  std::ifstream vmstat("/proc/vmstat");
  return memory_kills(vmstat);
}

}  // namespace

ChildEnd::ChildEnd(pid_t pid) : pid_(pid), memory_kills_(memory_kills_now()) {}

std::string ChildEnd::description() const { return describe_status(status_, memory_kills_, memory_kills_now()); }

std::vector<pid_t> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code ended;
  std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", process), ended);
  for (; task != std::filesystem::directory_iterator(); task.increment(ended))
    threads.push_back(std::atoi(task->path().filename().c_str()));
  return threads;
}

bool Silence::exceeds(double limit_s, pid_t process) {
  if (seconds() <= limit_s / 2.0) return false;
  const double waited_s = waited_for_processor_s(process);
  if (!waited_before_s_) waited_before_s_ = waited_s;
  return seconds() - (waited_s - *waited_before_s_) > limit_s;
}

namespace {

constexpr int worker_input = 3;
constexpr int worker_output = 4;

pid_t started(const WorkerCommand& command, const Descriptor& input, const Descriptor& output) {
  std::vector<std::string> words = command.argv;
  words.insert(words.end(),
               {"--worker-input", std::to_string(worker_input), "--worker-output", std::to_string(worker_output)});
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int printed = command.output_fd < 0 ? STDERR_FILENO : command.output_fd;
  // A separate group: Ctrl-C at the terminal reaches only the supervisor, and the whole group can be ended.
  return start_child(words, {.descriptors = {{STDIN_FILENO, nothing.get()},
                                             {STDOUT_FILENO, printed},
                                             {STDERR_FILENO, printed},
                                             {worker_input, input.get()},
                                             {worker_output, output.get()}},
                             .leads_group = true,
                             .usual_signals = true,
                             .yields = true});
}

}  // namespace

// Sockets, not pipes, for MSG_NOSIGNAL.
WorkerProcess::Channel WorkerProcess::channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw BackendError(fmt::format("could not open a channel to a worker: {}", std::strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

WorkerProcess::WorkerProcess(const WorkerCommand& command, Channel to_worker, Channel from_worker)
    : to_worker_(std::move(to_worker.first)),
      from_worker_(std::move(from_worker.first)),
      end_(started(command, to_worker.second, from_worker.second)) {}

WorkerProcess::~WorkerProcess() {
  if (!end_.ended() && !abandoned_) dismiss();
}

void WorkerProcess::signal_group(int signal) const { ::kill(-end_.pid(), signal); }

std::string WorkerProcess::reap() {
  if (!end_.within(patience_s)) {
    terminate();
    return "closed its pipe and did not end";
  }
  signal_group(SIGKILL);  // its children
  return end_.description();
}

void WorkerProcess::dismiss() {
  to_worker_ = Descriptor();
  if (!end_.within(patience_s)) terminate();
}

void WorkerProcess::terminate() {
  if (end_.ended() || abandoned_) return;
  signal_group(SIGTERM);
  if (end_.within(patience_s)) return;
  signal_group(SIGKILL);
  abandoned_ = !end_.within(patience_s);
}

}  // namespace gpubench

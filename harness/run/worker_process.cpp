#include "harness/run/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr double patience_s = 2.0;
constexpr int worker_input = 3;
constexpr int worker_output = 4;

pid_t started(const WorkerCommand& command, const Descriptor& input, const Descriptor& output) {
  std::vector<std::string> words = command.argv;
  words.insert(words.end(),
               {"--worker-input", std::to_string(worker_input), "--worker-output", std::to_string(worker_output)});
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  // A group of its own: Ctrl-C at the terminal reaches the supervisor only, and all its children can be ended at once.
  return start_child(words, {.descriptors = {{STDIN_FILENO, nothing.get()},
                                             {STDOUT_FILENO, STDERR_FILENO},
                                             {worker_input, input.get()},
                                             {worker_output, output.get()}},
                             .leads_group = true,
                             .usual_signals = true});
}

}  // namespace

// Sockets, not pipes: writing to one whose reader is gone can be told not to raise SIGPIPE.
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
  if (!end_.ended() && !left_behind_) dismiss();
}

void WorkerProcess::signal_group(int signal) const { ::kill(-end_.pid(), signal); }

std::string WorkerProcess::reap() {
  if (!end_.within(patience_s)) {
    terminate();
    return "closed its pipe and did not end";
  }
  signal_group(SIGKILL);  // what it may have started itself
  return describe_status(end_.status());
}

void WorkerProcess::dismiss() {
  to_worker_ = Descriptor();
  if (!end_.within(patience_s)) terminate();
}

void WorkerProcess::terminate() {
  if (end_.ended() || left_behind_) return;
  signal_group(SIGTERM);
  if (end_.within(patience_s)) return;
  signal_group(SIGKILL);
  left_behind_ = !end_.within(patience_s);
}

}  // namespace gpubench

#include "reference/cpu/isa_proof.h"

#include <fmt/core.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "harness/core/error.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/onednn_products.h"
#include "reference/cpu/own_kernel_proof.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu {
namespace {

using Stage = IsaProof::Stage;

/// A trial that takes longer hangs; on an idle machine it takes milliseconds.
constexpr unsigned patience_s = 60;

// What the child writes, one line each: "clones", "own <isa>", "isa <isa>", "onednn <product>", "right",
// "fault <how>", "passed". What it was at when it died is the last line.
void tell(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
}

constexpr const char* wrong = "fault gave a wrong result";

bool try_everything(const IsaLimit& limit, int pipe) {
  const auto comes_right = [&](const std::string& line, const auto& holds) {
    tell(pipe, line);
    const bool right = holds();
    tell(pipe, right ? "right" : wrong);
    return right;
  };
  if (!comes_right("clones", vector_clones_hold)) return false;
  for (const OwnKernels& kernels : own_kernels()) {
    if (!kernels.announced() || limit.barred.contains(kernels.isa)) continue;
    if (!comes_right("own " + kernels.isa, kernels.hold)) return false;
  }
  tell(pipe, "onednn its start");
  const OneDnn onednn(limit.onednn);
  tell(pipe, "isa " + onednn_isa());
  bool all = true;
  for_each_known_product(onednn, [&](const KnownProduct& product) {
    all = all && comes_right("onednn " + product.name, product.comes_right);
  });
  return all;
}

[[noreturn]] void be_child(const IsaLimit& limit, int pipe) {
  // A death is silent: neither a core file nor a handler's report. SIGSEGV keeps its handler: where CPUID is emulated
  // it is how that is done.
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGILL, SIGFPE, SIGBUS, SIGABRT, SIGALRM, SIGINT, SIGTERM})
    (void)std::signal(signal, SIG_DFL);
  (void)::alarm(patience_s);
  (void)::dup2(STDERR_FILENO, STDOUT_FILENO);  // a library that prints must not spoil this program's output
  omp_set_num_threads(1);
  try {
    if (try_everything(limit, pipe)) tell(pipe, "passed");
  } catch (const std::exception& error) {
    std::string text = error.what();
    for (char& c : text) c = c == '\n' ? ' ' : c;
    tell(pipe, "fault failed: " + text);
  }
  ::_exit(0);  // nothing of the parent's is flushed or destroyed twice
}

std::string read_all(int pipe) {
  std::string text;
  char block[512];
  while (true) {
    const ssize_t count = ::read(pipe, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block, static_cast<std::size_t>(count));
  }
}

std::string end_of(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != child) return "ended unseen";
  if (!WIFSIGNALED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return fmt::format("took more than {} s", patience_s);
  const char* name = ::sigabbrev_np(WTERMSIG(status));
  return name == nullptr ? fmt::format("died with signal {}", WTERMSIG(status)) : fmt::format("died with SIG{}", name);
}

IsaProof read_proof(const std::string& text) {
  IsaProof proof;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (word == "isa") {
      proof.onednn = rest;
    } else if (word == "fault") {
      proof.fault = rest;
    } else if (word == "right") {
      proof.step = "what comes after " + proof.step;
    } else if (word == "passed") {
      proof.stage = Stage::passed;
    } else {
      proof.stage = word == "clones" ? Stage::clones : word == "own" ? Stage::own : Stage::onednn;
      proof.step = rest;
      proof.tried.push_back(line);
    }
  }
  return proof;
}

}  // namespace

IsaProof prove_in_child(const IsaLimit& limit) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) throw BackendError(fmt::format("cpu: cannot make a pipe: {}", std::strerror(errno)));
  (void)std::fflush(nullptr);  // or a library that flushes in the child would print again what waits here
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_child(limit, ends[1]);
  }
  const int error = errno;
  ::close(ends[1]);
  const std::string text = child < 0 ? "" : read_all(ends[0]);
  ::close(ends[0]);
  if (child < 0) {
    throw BackendError(
        fmt::format("cpu: cannot start a process to try the instruction sets in: {}", std::strerror(error)));
  }
  const std::string end = end_of(child);
  IsaProof proof = read_proof(text);
  if (proof.stage != Stage::passed && proof.fault.empty()) proof.fault = end;
  return proof;
}

}  // namespace gpubench::cpu

#include "harness/run/process_state.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "harness/run/child_process.h"

namespace gpubench {
namespace {

// `mode`: the two bits of rounding control in MXCSR, the x87's control word, or FPCR, where up and down are swapped.
[[maybe_unused]] std::string rounding_text(unsigned mode) {
#if defined(__aarch64__)
  static constexpr const char* directions[] = {"to nearest", "up", "down", "toward zero"};
#else
  static constexpr const char* directions[] = {"to nearest", "down", "up", "toward zero"};
#endif
  return fmt::format("the rounding mode {}", directions[mode & 3U]);
}

void add(std::string& text, const std::string& part) { text += (text.empty() ? "" : ", ") + part; }

}  // namespace

std::string ArithmeticModes::restore_from(const ArithmeticModes& changed) const {
  std::string what;
#if defined(__x86_64__)
  constexpr unsigned denormal_inputs = 1U << 6U, denormal_results = 1U << 15U, rounding = 13, traps = 0x1f80;
  const unsigned differ = vector_ ^ changed.vector_;
  if ((differ & (3U << rounding)) != 0) add(what, rounding_text(changed.vector_ >> rounding));
  if ((differ & denormal_inputs) != 0)
    add(what, (changed.vector_ & denormal_inputs) != 0 ? "denormal inputs read as zero" : "denormal inputs read");
  if ((differ & denormal_results) != 0)
    add(what, (changed.vector_ & denormal_results) != 0 ? "denormal results flushed to zero" : "denormal results kept");
  if ((differ & traps) != 0) add(what, "other floating-point exceptions trapped");
  if (x87_ != changed.x87_) {
    constexpr unsigned x87_rounding = 10;
    const bool turned = ((x87_ ^ changed.x87_) >> x87_rounding & 3U) != 0;
    add(what, turned ? "the x87's " + rounding_text(changed.x87_ >> x87_rounding)
                     : fmt::format("the x87's control word {:#x}", changed.x87_));
  }
  _mm_setcsr(vector_);
  __asm__ __volatile__("fldcw %0" : : "m"(x87_));
#elif defined(__aarch64__)
  // Arm Architecture Reference Manual, FPCR
  constexpr unsigned flushing = 1U << 24U, rounding = 22;
  const unsigned differ = vector_ ^ changed.vector_;
  if ((differ & (3U << rounding)) != 0) add(what, rounding_text(changed.vector_ >> rounding));
  if ((differ & flushing) != 0)
    add(what, (changed.vector_ & flushing) != 0 ? "denormals flushed to zero" : "denormals kept");
  if ((differ & ~(3U << rounding | flushing)) != 0) add(what, fmt::format("the register FPCR {:#x}", changed.vector_));
  __asm__ __volatile__("msr fpcr, %0" : : "r"(std::uint64_t{vector_}));
#else
  if (vector_ != changed.vector_) what = fmt::format("the rounding mode {}", changed.vector_);
  (void)std::fesetround(static_cast<int>(vector_));
#endif
  return what;
}

SignalHandlers SignalHandlers::now() {
  SignalHandlers handlers;
  handlers.of_.resize(static_cast<std::size_t>(NSIG));
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction& one = handlers.of_[static_cast<std::size_t>(signal)];
    std::memset(&one, 0, sizeof one);
    (void)::sigaction(signal, nullptr, &one);  // refused for the C library's own two
  }
  return handlers;
}

std::string SignalHandlers::restore() const {
  const SignalHandlers left = now();
  std::string what;
  for (int signal = 1; signal < NSIG; ++signal) {
    const struct sigaction& before = of_[static_cast<std::size_t>(signal)];
    const struct sigaction& after = left.of_[static_cast<std::size_t>(signal)];
    // sa_handler and sa_sigaction are a union.
    if (before.sa_handler == after.sa_handler && before.sa_flags == after.sa_flags) continue;
    add(what, fmt::format("the handler of signal {} ({})", signal, ::strsignal(signal)));
    (void)::sigaction(signal, &before, nullptr);
  }
  return what;
}

namespace {

constexpr std::size_t max_processors = 8192;  // limit of Linux

std::size_t count(const std::vector<unsigned long>& processors) {
  std::size_t bits = 0;
  for (const unsigned long word : processors) bits += static_cast<std::size_t>(std::popcount(word));
  return bits;
}

// Empty for a thread that has ended. A system call, since the C library's function zeroes a set of another size.
std::vector<unsigned long> processors_of(pid_t thread) {
  std::vector<unsigned long> processors(max_processors / (8 * sizeof(unsigned long)));
  if (::syscall(SYS_sched_getaffinity, thread, processors.size() * sizeof(unsigned long), processors.data()) < 0)
    processors.clear();
  return processors;
}

// As Linux lists them: "0-3,8".
std::string list_of(const std::vector<unsigned long>& processors) {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  const auto has = [&](std::size_t i) {
    return i < processors.size() * bits && (processors[i / bits] >> i % bits & 1U) != 0;
  };
  std::string list;
  for (std::size_t first = 0; first < processors.size() * bits; ++first) {
    if (!has(first)) continue;
    std::size_t last = first;
    while (has(last + 1)) ++last;
    if (!list.empty()) list += ",";
    list += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return list;
}

std::string threads_text(int threads) { return threads == 1 ? "1 thread" : fmt::format("{} threads", threads); }

}  // namespace

std::vector<unsigned long> UsableProcessors::now() { return processors_of(0); }

std::string UsableProcessors::take_change() {
  std::vector<unsigned long> before = std::exchange(processors_, now());
  return before == processors_ ? "" : fmt::format("from {} to {}", list_of(before), list_of(processors_));
}

std::string processors_note(const std::string& change) {
  return fmt::format(
      "the processors that this process may use changed {} during the run: another process or a cpuset set them; don't "
      "compare timings before and after",
      change);
}

bool user_binds_threads() {
  return std::ranges::any_of(std::array{"KMP_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES"},
                             [](const char* variable) { return std::getenv(variable) != nullptr; });
}

Scheduling Scheduling::now() {
  Scheduling all;
  for (const pid_t thread : threads_of(::getpid())) {
    OfThread one;
    one.processors = processors_of(thread);
    if (one.processors.empty()) continue;
    one.niceness = ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread));
    one.policy = ::sched_getscheduler(thread);
    sched_param parameters{};
    (void)::sched_getparam(thread, &parameters);
    one.priority = parameters.sched_priority;
    all.threads_[thread] = std::move(one);
  }
  return all;
}

std::string Scheduling::changed_in(const Scheduling& later, bool but_processors) const {
  int processors = 0, niceness = 0, policy = 0;
  std::string of_processors, of_niceness, of_policy;
  for (const auto& [thread, before] : threads_) {
    const auto found = later.threads_.find(thread);
    if (found == later.threads_.end()) continue;
    const OfThread& after = found->second;
    if (!but_processors && before.processors != after.processors && processors++ == 0)
      of_processors = fmt::format("{} instead of {}", count(after.processors), count(before.processors));
    if (before.niceness != after.niceness && niceness++ == 0)
      of_niceness = fmt::format("{} instead of {}", after.niceness, before.niceness);
    if ((before.policy != after.policy || before.priority != after.priority) && policy++ == 0)
      of_policy = fmt::format("{} instead of {}, numbered as in <sched.h>", after.policy, before.policy);
  }
  std::string what;
  if (processors > 0) add(what, fmt::format("the processors of {} ({})", threads_text(processors), of_processors));
  if (niceness > 0) add(what, fmt::format("the niceness of {} ({})", threads_text(niceness), of_niceness));
  if (policy > 0) add(what, fmt::format("the scheduling policy of {} ({})", threads_text(policy), of_policy));
  return what;
}

bool Scheduling::restore() const {
  bool restored = true;
  const Scheduling now = Scheduling::now();
  for (const auto& [thread, before] : threads_) {
    const auto found = now.threads_.find(thread);
    if (found == now.threads_.end()) continue;
    const OfThread& after = found->second;
    if (before.policy != after.policy || before.priority != after.priority) {
      const sched_param parameters{before.priority};
      restored = ::sched_setscheduler(thread, before.policy, &parameters) == 0 && restored;
    }
    if (before.niceness != after.niceness)
      restored = ::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), before.niceness) == 0 && restored;
    if (before.processors != after.processors)
      restored = ::syscall(SYS_sched_setaffinity, thread, before.processors.size() * sizeof(unsigned long),
                           before.processors.data()) == 0 &&
                 restored;
  }
  return restored;
}

}  // namespace gpubench

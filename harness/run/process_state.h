// State of the process or thread that code under test could change: modes of floating-point arithmetic, signal
// handlers, scheduling of threads. Changes are found, reported and restored. Also the supervisor's checks of its
// worker: code changed in memory, clocks that were moved.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace gpubench {

/// The calling thread's rounding mode, handling of denormals, and trapped exceptions, without the flags that arithmetic
/// raises: MXCSR and the x87's control word on x86, FPCR on Arm, only the rounding mode elsewhere.
class ArithmeticModes {
 public:
  [[nodiscard]] static ArithmeticModes now() {
    ArithmeticModes modes;
#if defined(__x86_64__)
    constexpr unsigned raised = 0x3f;
    modes.vector_ = _mm_getcsr() & ~raised;
    __asm__ __volatile__("fnstcw %0" : "=m"(modes.x87_));
#elif defined(__aarch64__)
    std::uint64_t control = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
    modes.vector_ = static_cast<std::uint32_t>(control);
#else
    modes.vector_ = static_cast<std::uint32_t>(std::fegetround());
#endif
    return modes;
  }
  bool operator==(const ArithmeticModes&) const = default;

  /// Restores these modes on the calling thread. Returns the changes in `changed`: "the rounding mode toward zero".
  std::string restore_from(const ArithmeticModes& changed) const;

 private:
  std::uint32_t vector_ = 0;  ///< MXCSR, FPCR
  std::uint16_t x87_ = 0;
};

class SignalHandlers {
 public:
  [[nodiscard]] static SignalHandlers now();
  /// Restores changed handlers. Returns "the handler of signal 11 (Segmentation fault)", or "" if none had changed.
  [[nodiscard]] std::string restore() const;

 private:
  std::vector<struct sigaction> of_;  ///< by signal, from 1
};

/// The processors that the calling thread may use. Other processes (taskset) and cpusets can change them.
class UsableProcessors {
 public:
  /// The change since the last call or construction: "from 0-1 to 0", or "". Takes one system call.
  [[nodiscard]] std::string take_change();

 private:
  std::vector<unsigned long> processors_ = now();  ///< bit mask
  [[nodiscard]] static std::vector<unsigned long> now();
};

/// The note for the user. `change`: take_change().
[[nodiscard]] std::string processors_note(const std::string& change);

/// Whether the environment makes OpenMP bind threads: a library with its own OpenMP then binds the calling thread.
[[nodiscard]] bool user_binds_threads();

class Scheduling {
 public:
  [[nodiscard]] static Scheduling now();
  /// The changes of threads that exist in both: "the processors of 1 thread (1 instead of 2)", "the niceness of 1
  /// thread (10 instead of 0)". `but_processors`: ignores processors.
  [[nodiscard]] std::string changed_in(const Scheduling& later, bool but_processors) const;
  /// Restores these threads. False where the kernel refuses: a lower niceness needs a privilege.
  [[nodiscard]] bool restore() const;

 private:
  struct OfThread {
    std::vector<unsigned long> processors;  ///< bit mask
    int niceness = 0;
    int policy = 0;
    int priority = 0;  ///< of a real-time policy
  };
  std::map<int, OfThread> threads_;  ///< by the kernel's thread id
};

// The supervisor's checks of its worker (worker_watch.cpp), which code in the worker cannot influence.

/// Compares the executable code of the process's program and C library with their files, and its vDSO with this
/// process's: "the worker's code was changed in memory: libc.so.6 at 0xd5a20". Empty where nothing was changed, and
/// where it cannot be read: the process has ended, or the system refuses. Data (tables of function pointers) and code
/// of other libraries are not compared.
[[nodiscard]] std::string changed_code(pid_t process);

/// The reason why changed_code() cannot read this process; empty if it can.
[[nodiscard]] std::string hidden_code_reason(pid_t process);

/// Compares the time stamps of a worker's messages with the supervisor's clock. Both are the system's monotonic clock,
/// so correct stamps differ only by the latency of a message.
class WorkerClock {
 public:
  /// A message stamped `sent_s` arrived at `now_s`; at `empty_s` it had not arrived. Returns the fault, if any: a stamp
  /// from the future, or two messages in a row stamped more than 50 ms + 1% of the worker's age before they were sent.
  /// (Two, because a worker can lose its processor between stamp and sending.)
  [[nodiscard]] std::optional<std::string> fault(double sent_s, double empty_s, double now_s);

 private:
  std::optional<double> first_s_;
  bool late_before_ = false;
};

[[nodiscard]] double monotonic_s();

}  // namespace gpubench

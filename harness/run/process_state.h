// What belongs to the whole process or thread and foreign code could leave changed: the modes of the processor's
// floating-point arithmetic, the handlers of signals, and how threads are scheduled. Found, said, and restored.
// And what a supervisor sees of its worker from outside: code that was changed in memory, clocks that were moved.
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

/// The calling thread's rounding mode, what becomes of denormals, and which exceptions trap; not the flags that
/// arithmetic raises. On x86 MXCSR and the x87's control word, on Arm FPCR, elsewhere the rounding mode alone.
class ArithmeticModes {
 public:
  /// Takes a few nanoseconds.
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

  /// Restores these modes on the calling thread, which has `changed` ones; what had changed: "the rounding mode toward
  /// zero".
  std::string restore_from(const ArithmeticModes& changed) const;

 private:
  std::uint32_t vector_ = 0;  ///< MXCSR, FPCR
  std::uint16_t x87_ = 0;
};

/// The handlers of all signals.
class SignalHandlers {
 public:
  [[nodiscard]] static SignalHandlers now();
  /// Restores those that have changed: "the handler of signal 11 (Segmentation fault)"; empty where none had.
  [[nodiscard]] std::string restore() const;

 private:
  std::vector<struct sigaction> of_;  ///< by signal, from 1
};

/// The processors that the calling thread may use. Other processes can change them (taskset), and so can a cpuset.
class UsableProcessors {
 public:
  /// What has changed since the last call, or since it was made: "from 0-1 to 0"; empty where nothing has. Takes one
  /// system call.
  [[nodiscard]] std::string take_change();

 private:
  std::vector<unsigned long> processors_ = now();  ///< a bit each
  [[nodiscard]] static std::vector<unsigned long> now();
};

/// The sentence for the user.
[[nodiscard]] std::string processors_note(const std::string& change);

/// Whether OpenMP was told to bind threads: a library with an OpenMP of its own then binds the thread that calls it.
[[nodiscard]] bool user_binds_threads();

/// On which processors the threads of this process may run, how nice they are, and under which policy.
class Scheduling {
 public:
  [[nodiscard]] static Scheduling now();
  /// What has changed of threads that are there in both: "the processors of 1 thread (1 instead of 2)", "the niceness
  /// of 1 thread (10 instead of 0)".
  /// `but_processors`: whatever became of these.
  [[nodiscard]] std::string changed_in(const Scheduling& later, bool but_processors) const;
  /// Gives these threads what they had. False where the kernel refuses: a lower niceness takes a privilege.
  [[nodiscard]] bool restore() const;

 private:
  struct OfThread {
    std::vector<unsigned long> processors;  ///< a bit each
    int niceness = 0;
    int policy = 0;
    int priority = 0;  ///< of a real-time policy
  };
  std::map<int, OfThread> threads_;  ///< by the kernel's number
};

// What a supervisor sees of its worker from outside, whatever the code in there does (worker_watch.cpp).

/// Compares the executable code of the process's own program, of its C library and of the kernel's vDSO with their
/// files (the vDSO with this process's): "the worker's code was changed in memory: libc.so.6 at 0xd5a20". Empty where
/// nothing was, and where it cannot be read: the process is gone, or the system refuses. It sees neither data (tables
/// of function pointers) nor code of other libraries.
[[nodiscard]] std::string changed_code(pid_t process);

/// Whether changed_code() can look into this process at all; the reason, else empty.
[[nodiscard]] std::string hidden_code_reason(pid_t process);

/// Compares the time stamps of a worker's messages with the supervisor's clock; both are the system's monotonic clock,
/// so honest ones differ only by how long a message was under way.
class WorkerClock {
 public:
  /// A message with the stamp `sent_s` came at `now_s`; at `empty_s` nothing had come yet, so it was sent later than
  /// that. Returns the fault, if there is one: a stamp from the future, or two messages in a row that were stamped more
  /// than 50 ms + 1% of the worker's age before they were sent. (A worker that loses its processor between the stamp
  /// and sending is late once.)
  [[nodiscard]] std::optional<std::string> fault(double sent_s, double empty_s, double now_s);

 private:
  std::optional<double> first_s_;
  bool late_before_ = false;
};

/// Seconds of the system's monotonic clock.
[[nodiscard]] double monotonic_s();

}  // namespace gpubench

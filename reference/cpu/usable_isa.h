// Which of the processor's instruction sets this process may use: those that gave right results when they were tried.
//
// Everything that chooses by instruction set asks here, oneDNN's engine and own kernels alike, so that every program
// that opens the backend is covered. The trial runs once per process, when first asked for, and takes milliseconds. Its
// outcome is left in the environment for child processes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpubench::cpu {

// A trial of the instruction sets in a child process, where a crash costs nothing.
//
// Processors announce more than they have: virtual machines hand on the flags of AMX with an empty CPUID leaf 0x1D, and
// oneDNN's AMX code then ends with SIGILL. No flag reveals that; running the code does. A signal handler that jumps
// back would leave the library as it is, with its choice of instruction set made for good, so each trial is a child. It
// is forked rather than started again with a flag, because every program that opens the backend has to be covered,
// tests included, and not all of them have such a flag. Fork is safe here: the trial comes before anything else uses
// oneDNN, and the child runs on one thread, so that it neither needs OpenMP's threads, which it has not inherited, nor
// takes a lock that one of them held.

/// The instruction sets that a process allows itself.
struct IsaLimit {
  std::string onednn;            ///< the highest of oneDNN's instruction sets; "": the library's own choice
  std::set<std::string> barred;  ///< kernels of our own that are passed over: "avx2", "avx512", "amx_bf16"
  bool operator==(const IsaLimit&) const = default;
};

/// The outcome of trying a limit.
struct IsaProof {
  enum class Stage {
    started,   ///< nothing was tried yet
    baseline,  ///< vector code for every processor: there is no choice to make
    own,       ///< kernels of our own for one instruction set
    onednn,    ///< oneDNN's products
    passed     ///< everything was right
  };
  Stage stage = Stage::started;    ///< how far it came
  std::string step;                ///< what was tried last: "amx_bf16", "the bf16 matmul (onednn:...)"
  std::string fault;               ///< how it ended there: "died with SIGILL", "gave a wrong result"
  std::string onednn;              ///< oneDNN's highest instruction set under the limit; "" where it did not get there
  std::vector<std::string> tried;  ///< every step
};
using IsaProver = std::function<IsaProof(const IsaLimit& limit)>;

/// Tries everything that `limit` lets this process use, in a child of it: own kernels, then oneDNN.
/// Throws BackendError when no child can be started.
[[nodiscard]] IsaProof prove_in_child(const IsaLimit& limit);

// What comes of the trials.

/// A limit, and why there is one.
struct UsableIsa {
  IsaLimit limit;
  std::string left_to_user;  ///< "ONEDNN_MAX_CPU_ISA=ALL": the user asked for what does not work, and it is left so
  std::string why;           ///< empty where nothing is limited and everything works
  bool operator==(const UsableIsa&) const = default;
};

/// What this process may use: inherited from the process that started it where that has tried, else by trial. Throws
/// BackendError where nothing works, or nothing can be tried.
[[nodiscard]] const UsableIsa& usable_isa();

/// False for our own kernels that gave wrong results or crashed: "avx2", "avx512", "avx512_bf16", "amx_bf16".
[[nodiscard]] bool own_kernels_usable(const std::string& isa);

/// Keeps the kernels that Highway compiles for several processors (vector_targets.h) below "avx512" or "avx2", where
/// `barred` has it.
void limit_vector_kernels(const std::set<std::string>& barred);

/// For DeviceInfo::properties, nothing where all is well: ("cpu_isa", "limited to avx512_core_bf16") and
/// ("cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty").
[[nodiscard]] std::vector<std::pair<std::string, std::string>> properties_of(const UsableIsa& isa);

/// eax, ebx, ecx and edx of a leaf and subleaf of CPUID, zeros beyond the last.
using CpuidReader = std::function<std::array<std::uint32_t, 4>(std::uint32_t leaf, std::uint32_t subleaf)>;
[[nodiscard]] std::array<std::uint32_t, 4> read_cpuid(std::uint32_t leaf, std::uint32_t subleaf);

/// Tries, lowers what failed by one step, and tries again until everything that is left passes. `users_variable`:
/// a limit of the user's own for oneDNN, which is not touched. Throws BackendError when nothing is left to lower.
[[nodiscard]] UsableIsa find_usable_isa(const IsaProver& prove, const CpuidReader& cpuid,
                                        const std::string& users_variable);

/// One line for a child of `process`, and back. Nothing for a line of another form or for another process.
[[nodiscard]] std::string to_text(const UsableIsa& isa, std::int64_t process);
[[nodiscard]] std::optional<UsableIsa> from_text(const std::string& text, std::int64_t process);

// oneDNN's instruction sets: which is in use, which is the next lower one, and how it is kept to one.
//
// A limit holds for the whole process and can be set only before the library first asks what the processor has:
// https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html

/// The highest instruction set that the library uses here, in its own words: "avx512_core_amx". From now on it can no
/// longer be limited. "" where it has no such choice (another architecture).
[[nodiscard]] std::string onednn_isa();

/// Whether the library has instructions for products of bf16 here. Without them it emulates those products or lacks
/// them; emulation takes 2 to 5 times as long as f32.
[[nodiscard]] bool onednn_multiplies_bf16();

/// The highest one below `isa`: avx512_core_bf16 below avx512_core_amx in version 2.6, avx512_core_fp16 in 3.7. ""
/// below the lowest and for a name that is none.
[[nodiscard]] std::string next_lower_isa(const std::string& isa);

/// Keeps the library to `isa` and what is below. Throws BackendError for a name that is none, and when the library uses
/// more all the same, because it was asked too late or built without this limit.
void limit_onednn(const std::string& isa);

/// What the user lets oneDNN use: "ONEDNN_MAX_CPU_ISA=AVX2", the first of the variables that the library reads; ""
/// where none is set.
[[nodiscard]] std::string onednn_isa_variable();

}  // namespace gpubench::cpu

// Instruction sets that this process may use: those that gave right results in a trial.
//
// oneDNN's engine and own kernels both ask here, so every program that opens the backend is covered. The trial runs
// once per process, at the first request, and takes milliseconds. Child processes inherit the result through the
// environment.
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

// Trials run in a child process, which may crash.
//
// Processors report features that do not work: virtual machines pass on AMX flags with an empty CPUID leaf 0x1D, and
// oneDNN's AMX code then ends with SIGILL. Only running the code reveals this. After a signal the library could not
// change its choice of instruction set, so each trial is a child.
//
// The child is forked, not started with a flag, as not every program has one. Fork is safe: the trial precedes any use
// of oneDNN, and the child has one thread, so it needs neither OpenMP's threads nor their locks.

/// Instruction sets that a process permits itself.
struct IsaLimit {
  std::string onednn;            ///< oneDNN's highest instruction set; "": the library's choice
  std::set<std::string> barred;  ///< own kernels to skip: "avx2", "avx512", "amx_bf16"
  bool operator==(const IsaLimit&) const = default;
};

struct IsaProof {
  enum class Stage {
    started,
    baseline,  ///< vector code for every processor, without a choice
    own,       ///< own kernels of one instruction set
    onednn,    ///< oneDNN's products
    passed
  };
  Stage stage = Stage::started;  ///< last stage reached
  std::string step;              ///< last trial: "amx_bf16", "the bf16 matmul (onednn:...)"
  std::string fault;             ///< its failure: "died with SIGILL", "gave a wrong result"
  std::string onednn;            ///< oneDNN's highest instruction set under the limit; "" if not reached
  std::vector<std::string> tried;
};
using IsaProver = std::function<IsaProof(const IsaLimit& limit)>;

/// Tries everything that `limit` permits in a child process: own kernels, then oneDNN. Throws BackendError if no child
/// can be started.
[[nodiscard]] IsaProof prove_in_child(const IsaLimit& limit);

struct UsableIsa {
  IsaLimit limit;
  std::string left_to_user;  ///< "ONEDNN_MAX_CPU_ISA=ALL": the user's faulty choice, which is kept
  std::string why;           ///< empty if nothing is limited and everything works
  bool operator==(const UsableIsa&) const = default;
};

/// What this process may use: inherited from its parent process, else by trial. Throws BackendError if nothing works,
/// or nothing can be tried.
[[nodiscard]] const UsableIsa& usable_isa();

/// False for own kernels that failed: "avx2", "avx512", "avx512_bf16", "amx_bf16".
[[nodiscard]] bool own_kernels_usable(const std::string& isa);

/// Limits Highway's kernels (vector_targets.h) to targets below "avx512" or "avx2", if `barred` contains them.
void limit_vector_kernels(const std::set<std::string>& barred);

/// For DeviceInfo::properties; empty without a limit: ("cpu_isa", "limited to avx512_core_bf16") and ("cpu_isa_reason",
/// "amx is announced, but CPUID leaf 0x1D is empty").
[[nodiscard]] std::vector<std::pair<std::string, std::string>> properties_of(const UsableIsa& isa);

/// eax, ebx, ecx and edx of a leaf and subleaf of CPUID; zeros beyond the last leaf.
using CpuidReader = std::function<std::array<std::uint32_t, 4>(std::uint32_t leaf, std::uint32_t subleaf)>;
[[nodiscard]] std::array<std::uint32_t, 4> read_cpuid(std::uint32_t leaf, std::uint32_t subleaf);

/// Tries, lowers the failed limit by one step, and repeats until all trials pass. `users_variable`: the user's limit
/// for oneDNN, which is kept. Throws BackendError if no limit can be lowered further.
[[nodiscard]] UsableIsa find_usable_isa(const IsaProver& prove, const CpuidReader& cpuid,
                                        const std::string& users_variable);

/// A line for children of `process`, and its parser. Empty for another form or process.
[[nodiscard]] std::string to_text(const UsableIsa& isa, std::int64_t process);
[[nodiscard]] std::optional<UsableIsa> from_text(const std::string& text, std::int64_t process);

// oneDNN's instruction sets.
//
// A limit holds for the whole process and must be set before the library's first CPU query:
// https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html

/// The library's highest usable instruction set: "avx512_core_amx". Afterwards it cannot be limited. "" on
/// architectures without a choice.
[[nodiscard]] std::string onednn_isa();

/// Whether the library has instructions for bf16 products here. Otherwise it emulates them, 2 to 5 times slower than
/// f32, or lacks them.
[[nodiscard]] bool onednn_multiplies_bf16();

/// The next instruction set below `isa`: below avx512_core_amx, avx512_core_bf16 in 2.6 and avx512_core_fp16 in 3.7. ""
/// below the lowest, and for unknown names.
[[nodiscard]] std::string next_lower_isa(const std::string& isa);

/// Limits the library to `isa`. Throws BackendError for unknown names, and if the library still uses more: it was
/// limited too late, or built without the feature.
void limit_onednn(const std::string& isa);

/// The user's limit for oneDNN, "ONEDNN_MAX_CPU_ISA=AVX2": the first variable that the library reads; "" if none is
/// set.
[[nodiscard]] std::string onednn_isa_variable();

}  // namespace gpubench::cpu

// Which of the processor's instruction sets this process may use: those that gave right results when they were tried.
//
// Everything that chooses by instruction set asks here, oneDNN's engine and own kernels alike, so that every program
// that opens the backend is covered. The trial (isa_proof.h) runs once per process, when first asked for, and takes
// milliseconds. What it found is left in the environment for child processes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/cpu/isa_proof.h"

namespace gpubench::cpu {

/// A limit, and why there is one.
struct UsableIsa {
  IsaLimit limit;
  std::string left_to_user;  ///< "ONEDNN_MAX_CPU_ISA=ALL": what does not work was asked for, and is left as it is
  std::string why;           ///< empty where nothing is limited and everything works
  bool operator==(const UsableIsa&) const = default;
};

/// What this process may use: from the process that started it where that found it out, else by trial. Throws
/// BackendError where nothing works, or nothing can be tried.
[[nodiscard]] const UsableIsa& usable_isa();

/// False for our own kernels that gave wrong results or crashed: "avx512", "avx512_bf16", "amx_bf16".
[[nodiscard]] bool own_kernels_usable(const std::string& isa);

/// For DeviceInfo::properties, nothing where all is well: ("cpu_isa", "limited to avx512_core_bf16") and
/// ("cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty").
[[nodiscard]] std::vector<std::pair<std::string, std::string>> properties_of(const UsableIsa& isa);

/// eax, ebx, ecx and edx of a leaf and subleaf of CPUID, zeros beyond the last.
using CpuidReader = std::function<std::array<std::uint32_t, 4>(std::uint32_t leaf, std::uint32_t subleaf)>;
[[nodiscard]] std::array<std::uint32_t, 4> read_cpuid(std::uint32_t leaf, std::uint32_t subleaf);

/// Tries, lowers what failed by one step, and tries again until everything that is left comes right. `users_variable`:
/// a limit of the user's own for oneDNN, which is not touched. Throws BackendError when nothing is left to lower.
[[nodiscard]] UsableIsa find_usable_isa(const IsaProver& prove, const CpuidReader& cpuid,
                                        const std::string& users_variable);

/// One line for a child of `process`, and back. What is not of that form, or of another process, is no answer.
[[nodiscard]] std::string to_text(const UsableIsa& isa, std::int64_t process);
[[nodiscard]] std::optional<UsableIsa> from_text(const std::string& text, std::int64_t process);

// oneDNN's instruction sets: which is in use, which is the next lower one, and how it is kept to one.
//
// A limit holds for the whole process and can be set only before the library first asks what the processor has:
// https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html

/// The highest instruction set that the library uses here, in its own words: "avx512_core_amx". From now on it can no
/// longer be limited. "" where it has no such choice (another architecture).
[[nodiscard]] std::string onednn_isa();

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

// oneDNN's instruction sets: which is in use, which is the next lower one, and how it is kept to one.
//
// A limit holds for the whole process and can be set only before the library first asks what the processor has:
// https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
#pragma once

#include <string>

namespace gpubench::cpu {

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

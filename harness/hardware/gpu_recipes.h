// Which recipes a GPU has arithmetic for, known from its compute capability before anything is tried on it.
#pragma once

#include <string>
#include <vector>

namespace gpubench {

/// A recipe and the compute capability that matrix products of its operands need, 89 for 8.9.
struct GpuRecipe {
  std::string name;
  int least_capability = 0;  ///< 0: every GPU has it
};

/// All recipes. 8-bit operands need 8.9, bf16 and TF32 ones 8.0 (PTX ISA, mma and wgmma: target architectures).
[[nodiscard]] std::vector<GpuRecipe> gpu_recipes();

/// Those that a GPU of this compute capability has; where it is not known (0), all.
[[nodiscard]] std::vector<std::string> recipes_of_gpu(int capability);

/// What it lacks, with the reason: "f8_hybrid, f8_hybrid_fast need compute capability 8.9; this device has 8.0".
/// Empty where it lacks nothing, or its capability is not known.
[[nodiscard]] std::string recipes_lacking(int capability);

}  // namespace gpubench

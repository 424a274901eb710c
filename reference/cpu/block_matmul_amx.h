// The AMX kernel of block_matmul.h. Private to it and to its trial (own_kernel_proof.h): block_matmul.cpp asks
// has_amx() before it calls anything else here.
#pragma once

#include "reference/cpu/block_matmul.h"

namespace gpubench::cpu::amx {

/// Whether the processor has AMX with bf16, the kernel lets this process use it (it asks once), and the products came
/// right in a trial (usable_isa.h).
[[nodiscard]] bool has_amx();

/// The first two alone: for the trial.
[[nodiscard]] bool announced();

/// What this kernel is called where it is barred.
inline constexpr const char* own_isa = "amx_bf16";

void load_tile_shapes();
void release_tiles();
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

}  // namespace gpubench::cpu::amx

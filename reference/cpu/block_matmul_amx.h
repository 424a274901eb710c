// The AMX kernel of block_matmul.h. Private to it: block_matmul.cpp asks has_amx() before it calls anything else here.
#pragma once

#include "reference/cpu/block_matmul.h"

namespace gpubench::cpu::amx {

/// Whether the processor has AMX with bf16 and the kernel lets this process use it (it asks once).
[[nodiscard]] bool has_amx();

void load_tile_shapes();
void release_tiles();
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

}  // namespace gpubench::cpu::amx

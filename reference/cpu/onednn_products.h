// Tiny products by oneDNN whose results are known: what proves an instruction set of the library.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// Work of one kind and type, with whole numbers so small that every sum is exact in its type, in whatever order.
struct KnownProduct {
  std::string name;                   ///< "the bf16 matmul (onednn:brgemm:avx512_core_amx_bf16)"
  std::function<bool()> comes_right;  ///< runs it; false where a number is not what it should be
};

/// Plans a matrix product and the three passes of a convolution in f32 and bf16, one at a time, and calls `with` for
/// each that the library has code of its own for: plain C++ loops prove no instruction set. They are large enough for
/// whole AMX tiles, below which the library goes without AMX: 64 rows, 64 columns, 128 or 576 terms.
void for_each_known_product(const OneDnn& onednn, const std::function<void(const KnownProduct&)>& with);

}  // namespace gpubench::cpu

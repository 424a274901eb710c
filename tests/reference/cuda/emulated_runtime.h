// What plans ask of CUDA's runtime, answered with host memory.
#pragma once

#include <vector>

#include "tests/reference/cuda/emulation/memory_watch.h"

namespace gpubench::testing {

/// Tables that plans have uploaded and still hold; kernels may read them.
[[nodiscard]] std::vector<cuda::emulation::Region> uploaded_tables();

}  // namespace gpubench::testing

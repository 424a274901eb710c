// What plans and the tuner ask of CUDA's runtime, answered with host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/cuda/emulation/memory_watch.h"

namespace gpubench::testing {

/// Tables that plans have uploaded and still hold; kernels may read them.
[[nodiscard]] std::vector<cuda::emulation::Region> uploaded_tables();

/// Nanoseconds of the spins that the tuner asked for so far (emulated_tuning.cpp).
[[nodiscard]] std::vector<std::uint64_t>& spins();

}  // namespace gpubench::testing

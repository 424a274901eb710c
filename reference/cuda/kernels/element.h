// Storage types as kernels name them: plain, so that launchers' headers need nothing of gpubench or CUDA.
#pragma once

#include <cstdint>

namespace gpubench::cuda {

enum class Element : std::uint8_t { f64, f32, f16, bf16 };

}  // namespace gpubench::cuda

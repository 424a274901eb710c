// Copies between a device and what surrounds it: the host's memory and its peers.
#pragma once

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Memory of the current device, the host's, or a peer's. `peer`: of the first other device that this one can address
/// directly. Throws Unsupported where there is no such device, BackendError when memory runs out.
[[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes, const DeviceTraits& device);

}  // namespace gpubench::cuda

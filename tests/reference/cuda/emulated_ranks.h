// Several ranks of the emulated backend, on streams that run side by side.
#pragma once

#include <functional>
#include <memory>

#include "reference/cuda/cuda_communicator.h"

namespace gpubench::testing {

using OpenCommunicator = std::function<std::unique_ptr<cuda::CudaCommunicator>(int ranks)>;

/// The ranks' queues are the CUDA backend's own (cuda_communicator.h), on this communicator.
[[nodiscard]] RankSet open_emulated_ranks(int ranks, const OpenCommunicator& open);

}  // namespace gpubench::testing

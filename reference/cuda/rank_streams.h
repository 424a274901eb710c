// The two lanes of a rank as two streams of its device.
#pragma once

#include <memory>

#include "reference/cuda/cuda_communicator.h"

namespace gpubench::cuda {

/// Compute steps go to `compute`, collectives to the communicator's stream of the rank, or to `compute` as well where
/// there is nothing beside them. Both must outlive the result; called with the rank's device current.
[[nodiscard]] std::unique_ptr<RankQueues> open_rank_streams(CudaCommunicator& communicator, int rank,
                                                            cudaStream_t compute);

}  // namespace gpubench::cuda

// One rank on each of several GPUs of this machine, by NCCL.
#pragma once

#include "reference/cuda/cuda_communicator.h"
#include "reference/cuda/nccl_calls.h"

namespace gpubench::cuda {

/// Communicators that never block, of one rank for each device: one thread per rank, which polls for errors while it
/// waits (NCCL 2.28 user guide, "Fault Tolerance"). `calls` must outlive it. Throws BackendError with NCCL's words
/// where they cannot be set up, or not within `deadline_s`.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                                       double deadline_s = 60.0);

}  // namespace gpubench::cuda

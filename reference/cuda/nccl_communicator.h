// One rank on each of several GPUs of this machine, by NCCL.
#pragma once

#include "reference/cuda/cuda_communicator.h"
#include "reference/cuda/nccl_calls.h"

namespace gpubench::cuda {

/// Communicators that block until their work is on a stream, of one rank for each device: for all ranks, and for each
/// group whose first collective is bound, made of that of all where NCCL can split one. One thread per rank, and
/// stop() on another thread, which ends calls that hang (NCCL 2.28 user guide, "Fault Tolerance"). `calls` must outlive
/// it. Throws BackendError with NCCL's words where they cannot be set up, DeviceLost where they are not within
/// `deadline_s`.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                                       double deadline_s = 60.0);

}  // namespace gpubench::cuda

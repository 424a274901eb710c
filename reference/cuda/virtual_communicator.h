// Several ranks on one GPU: a stream each, and collectives by own kernels in its memory. Everything that ranks do is
// done, but no wire is crossed: a way to run and check programs of several ranks, not to measure them.
#pragma once

#include "reference/cuda/cuda_communicator.h"

namespace gpubench::cuda {

/// Throws BackendError for fewer than one rank or more than most_virtual_ranks.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_virtual_communicator(int ranks, int ordinal);

}  // namespace gpubench::cuda

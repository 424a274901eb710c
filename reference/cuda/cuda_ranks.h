// Several ranks on NVIDIA GPUs: one on each of several, or all on one.
#pragma once

#include "reference/cuda/module.h"

namespace gpubench::cuda {

/// As Module::open_ranks. A virtual set is flagged "virtual".
[[nodiscard]] RankSet open_cuda_ranks(const RankOptions& options);

}  // namespace gpubench::cuda

// Collectives as the calls of NCCL that each rank makes for them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "reference/cuda/nccl_calls.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {

/// A call of a rank, within a group.
using NcclStep = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;
using NcclSteps = std::vector<NcclStep>;

/// The tensors of a bound collective.
struct NcclOperands {
  const NcclCalls& nccl;  ///< outlives the steps
  const OpCall& call;
  std::span<const Tensor> x, y;
  int ranks;  ///< that take part: the members of the call's group
};

/// What member `rank` of the group calls, all at once; nothing where it has no part. Moves are of bytes, so that no
/// type is lacking.
[[nodiscard]] NcclSteps nccl_steps(const NcclOperands& operands, int rank);

/// The type that is reduced. Throws Unsupported unless it is f64, f32, f16 or bf16.
[[nodiscard]] ncclDataType_t nccl_reduced_type(const OpCall& call, const TensorSpec& tensor);

}  // namespace gpubench::cuda

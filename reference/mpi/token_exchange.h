// Rows of tokens between MPI's processes, whose counts are known once it runs.
#pragma once

#include <functional>
#include <span>

#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "reference/mpi/mpi_processes.h"

namespace gpubench::mpi {

/// `member`'s part of a dispatch_tokens or return_tokens; `tensors`: those of the call's inputs, then of its outputs,
/// of which only the member's own have data: throws BackendError where those do not. What it returns throws DeviceLost.
[[nodiscard]] std::function<void()> exchange_of(MPI_Comm comm, int member, const OpCall& call,
                                                std::span<const Tensor> tensors);

}  // namespace gpubench::mpi

// Processes with a GPU each, as threads of this one: emulated devices, and collectives by the NCCL that fake_nccl.h
// plays.
#pragma once

#include "tests/harness/remote/memory_processes.h"
#include "tests/reference/cuda/fake_nccl.h"

namespace gpubench::testing {

/// `ranks` processes, whose communicators are in this trouble.
[[nodiscard]] std::unique_ptr<MemoryProcesses> nccl_processes(int ranks, NcclTrouble trouble = {});

/// The ranks of so many processes, which live as long as this program.
[[nodiscard]] RankSet open_nccl_in_processes(int ranks);

}  // namespace gpubench::testing

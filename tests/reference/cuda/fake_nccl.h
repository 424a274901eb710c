// NCCL's part for the CPU: collectives between emulated streams, with NCCL's rules of use enforced. Independent of the
// code under test, and slow.
#pragma once

#include <memory>

#include "reference/cuda/nccl.h"
#include "tests/harness/remote/memory_processes.h"

namespace gpubench::testing {

struct NcclTrouble {
  int rank = -1;        ///< whose communicator
  int after_calls = 0;  ///< groups that it takes before
  enum class Kind { none, async_error, never_enqueued, never_set_up, init_error } kind = Kind::none;
  int group_us = 0;  ///< of the host's time, for every group of any rank
};

/// A table of blocking communicators: a set-up returns once all ranks are at it, each on a thread of its own, and the
/// end of a group once its work is on the stream. Trouble is for communicators that are made from now on; what hangs
/// because of an earlier one ends. `splits`: as versions since 2.18, whose communicators can be split.
[[nodiscard]] const cuda::NcclCalls& fake_nccl(NcclTrouble trouble = {}, bool splits = true);

/// Of the ranks that were set up last: how many groups each of them had enqueued, at least, when the first device began
/// group `group`, counted from 0.
[[nodiscard]] int fake_nccl_least_enqueued(int group);

/// Communicators that were neither destroyed nor aborted.
[[nodiscard]] int fake_nccl_alive();
/// Of those that ever were, how many were aborted.
[[nodiscard]] int fake_nccl_aborted();

// Processes with a GPU each, as threads of this one: emulated devices, and these collectives.

/// `ranks` processes, whose communicators are in this trouble.
[[nodiscard]] std::unique_ptr<MemoryProcesses> nccl_processes(int ranks, NcclTrouble trouble = {});

/// The ranks of so many processes, which live as long as this program.
[[nodiscard]] RankSet open_nccl_in_processes(int ranks);

}  // namespace gpubench::testing

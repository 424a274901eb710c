// A slow fake of NCCL on the CPU, independent of the code under test: collectives between emulated streams that enforce
// NCCL's rules of use.
#pragma once

#include <memory>

#include "reference/cuda/nccl.h"
#include "tests/harness/remote/memory_processes.h"

namespace gpubench::testing {

struct NcclTrouble {
  int rank = -1;        ///< of the communicator in trouble
  int after_calls = 0;  ///< groups that succeed first
  enum class Kind { none, async_error, never_enqueued, never_set_up, init_error } kind = Kind::none;
  int group_us = 0;  ///< host time per group of any rank
};

/// A table of blocking communicators: a set-up returns once all ranks have called it, each on a separate thread; the
/// end of a group returns once its work is on the stream.
/// `trouble` affects communicators made later; calls hanging from an earlier one end. `splits`: communicators can be
/// split, as since version 2.18.
[[nodiscard]] const cuda::NcclCalls& fake_nccl(NcclTrouble trouble = {}, bool splits = true);

/// For the latest ranks: the least number of groups that any rank had enqueued when a device first began group `group`,
/// counted from 0.
[[nodiscard]] int fake_nccl_least_enqueued(int group);

/// Communicators neither destroyed nor aborted.
[[nodiscard]] int fake_nccl_alive();
/// Communicators aborted so far.
[[nodiscard]] int fake_nccl_aborted();

// Processes with one GPU each, as threads of this one, with emulated devices and these collectives.

/// `ranks` processes whose communicators have this trouble.
[[nodiscard]] std::unique_ptr<MemoryProcesses> nccl_processes(int ranks, NcclTrouble trouble = {});

/// The ranks of `ranks` processes, which are never freed.
[[nodiscard]] RankSet open_nccl_in_processes(int ranks);

}  // namespace gpubench::testing

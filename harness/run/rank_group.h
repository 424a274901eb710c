// Several ranks as one backend: every op runs on the thread of its rank, collectives on all of them, and a sequence is
// cut into what each rank does. Judging and timing above it see one backend like any other.
//
// On each rank a sequence has two lanes, compute and communication, which run side by side as far as data flow lets
// them: a collective starts once its rank has produced what it reads, and the next op waits for a collective only where
// it reads or overwrites what that works on.
#pragma once

#include <memory>

#include "harness/core/communicator.h"

namespace gpubench {

/// A rank that comes no further for `stall_limit_s` is lost, and the process's device with it.
/// Throws BackendError for a set without ranks.
[[nodiscard]] std::unique_ptr<Backend> open_rank_group(RankSet ranks, double stall_limit_s = 15.0);

}  // namespace gpubench

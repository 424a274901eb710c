// Several ranks on one machine's processors.
#pragma once

#include "harness/core/communicator.h"

namespace gpubench {

/// `ranks` CPU backends, each on an equal share of the processors that this process may use, and a communicator through
/// their shared memory. With more ranks than processors each has one thread, they are bound to none, and the set is
/// flagged "oversubscribed". Throws BackendError for fewer than one rank, or more than 64.
[[nodiscard]] RankSet open_cpu_ranks(int ranks);

/// The communicator alone, for groups of any ranks: `threads` of each rank share its part of the work.
[[nodiscard]] std::unique_ptr<Communicator> open_cpu_communicator(int threads, bool oversubscribed);

}  // namespace gpubench

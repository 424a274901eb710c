// NCCL's part for the CPU: collectives between emulated streams, with NCCL's rules of use enforced. Independent of the
// code under test, and slow.
#pragma once

#include "reference/cuda/nccl_calls.h"

namespace gpubench::testing {

struct NcclTrouble {
  int rank = -1;        ///< whose communicator
  int after_calls = 0;  ///< groups that it takes before
  enum class Kind { none, async_error, never_enqueued, never_set_up } kind = Kind::none;
};

/// A table whose communicators answer "in progress" a few times before each group is enqueued, and refuse every other
/// call meanwhile, as the real ones may. Trouble is for communicators that are made from now on.
[[nodiscard]] const cuda::NcclCalls& fake_nccl(NcclTrouble trouble = {});

/// Communicators that were neither destroyed nor aborted.
[[nodiscard]] int fake_nccl_alive();
/// Of those that ever were, how many were aborted.
[[nodiscard]] int fake_nccl_aborted();

}  // namespace gpubench::testing

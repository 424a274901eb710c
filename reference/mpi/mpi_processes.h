// The processes of MPI_COMM_WORLD: messages on a communicator of their own, and collectives on one for each group.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "harness/core/processes.h"
#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "reference/ops/collective.h"

namespace gpubench::mpi {

/// Module::join.
[[nodiscard]] std::unique_ptr<Processes> join(double send_limit_s);

/// "" for MPI_SUCCESS, else what MPI says, behind what was done.
[[nodiscard]] std::string complaint(int code, const char* what);
/// Throws BackendError with it.
void check(int code, const char* what);
/// Throws DeviceLost with it: of what a collective does.
void run_check(int code, const char* what);

/// A communicator, freed with this; errors of its calls are returned, not fatal. Freeing is no collective here: all
/// members do it, and none waits.
class HeldComm {
 public:
  explicit HeldComm(MPI_Comm held);
  HeldComm(const HeldComm&) = delete;
  HeldComm& operator=(const HeldComm&) = delete;
  ~HeldComm();
  [[nodiscard]] MPI_Comm get() const { return held_; }

 private:
  MPI_Comm held_;
};

/// Of the members of `in` with these ranks, in this order, which all call it. `tag`: of the calls that are made at the
/// same time each has its own.
[[nodiscard]] std::unique_ptr<HeldComm> communicator_of(MPI_Comm in, std::span<const int> members, int tag);

/// Messages to and from process `peer`. Throws BackendError where one is not taken within `send_limit_s`.
[[nodiscard]] std::unique_ptr<Channel> open_channel(MPI_Comm communicator, int peer, double send_limit_s);

/// Of the first `ranks` of `world`, which all call it; `library`: "openmpi".
[[nodiscard]] std::unique_ptr<RankCollectives> open_collectives(MPI_Comm world, int ranks, std::string library);

// Reductions that MPI has no operation for: bf16, and a maximum that keeps NaN. Added up in f32, rank by rank in order,
// and rounded once, so that whoever does it comes to the same bits.

/// `count` elements of each of `from`, f32 or bf16, to `to`, which may be one of them.
void reduce(DType type, Reduction reduction, std::span<const std::byte* const> from, std::byte* to, std::int64_t count);

/// Larger of `from` and `largest`, to `largest`; NaN where one is.
void keep_larger(const float* from, float* largest, std::int64_t count);

/// Each of the values over `divisor`.
void divide(float* values, std::int64_t count, float divisor);

// Rows of tokens between MPI's processes, whose counts are known once it runs.

/// `member`'s part of a dispatch_tokens or return_tokens; `tensors`: those of the call's inputs, then of its outputs,
/// of which only the member's own have data: throws BackendError where those do not. What it returns throws DeviceLost.
[[nodiscard]] std::function<void()> exchange_of(MPI_Comm comm, int member, const OpCall& call,
                                                std::span<const Tensor> tensors);

}  // namespace gpubench::mpi

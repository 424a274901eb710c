// Processes of MPI_COMM_WORLD: messages on a separate communicator, and collectives on one per group.
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

/// "" for MPI_SUCCESS, else `what` and MPI's message.
[[nodiscard]] std::string complaint(int code, const char* what);
/// Throws BackendError with complaint().
void check(int code, const char* what);
/// Throws DeviceLost with complaint(): for calls of a running collective.
void run_check(int code, const char* what);

/// A communicator, freed by the destructor; its calls return errors. Freeing must not wait for other members.
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

/// A communicator of the members of `in` with these ranks, in this order, which must all call this. `tag`: unique among
/// simultaneous calls.
[[nodiscard]] std::unique_ptr<HeldComm> communicator_of(MPI_Comm in, std::span<const int> members, int tag);

/// Messages to and from process `peer`. Throws BackendError if one is not taken within `send_limit_s`.
[[nodiscard]] std::unique_ptr<Channel> open_channel(MPI_Comm communicator, int peer, double send_limit_s);

/// Collectives of the first `ranks` of `world`, which must all call this; `library`: "openmpi".
[[nodiscard]] std::unique_ptr<RankCollectives> open_collectives(MPI_Comm world, int ranks, std::string library);

// Reductions without an MPI operation: bf16, and a maximum that keeps NaN. Summed in f32 in rank order and rounded
// once, so every rank gets the same bits.

/// Reduces `count` elements of each of `from`, f32 or bf16, to `to`, which may be one of them.
void reduce(DType type, Reduction reduction, std::span<const std::byte* const> from, std::byte* to, std::int64_t count);

/// largest = max(from, largest); NaN if either is.
void keep_larger(const float* from, float* largest, std::int64_t count);

void divide(float* values, std::int64_t count, float divisor);

/// `member`'s part of a dispatch_tokens or return_tokens. `tensors`: of the call's inputs, then outputs. Throws
/// BackendError if the member's own tensors have no data. The returned function throws DeviceLost.
[[nodiscard]] std::function<void()> exchange_of(MPI_Comm comm, int member, const OpCall& call,
                                                std::span<const Tensor> tensors);

}  // namespace gpubench::mpi

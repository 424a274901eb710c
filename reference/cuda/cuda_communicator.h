// Several ranks: what this backend's communicators have in common, and the two of them, on NCCL and on one GPU. A
// collective is enqueued on a stream, and waiting for a stream never outlasts a failure elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"
#include "reference/cuda/runtime.h"

namespace gpubench::cuda {

/// Throws Unsupported unless it is a collective of dense tensors.
void expect_collective(const OpCall& call, std::span<const TensorSpec> tensors);

/// A collective that this backend can run.
class CollectivePlan final : public PlanImpl {
 public:
  CollectivePlan(OpCall call, std::string implementation)
      : call_(std::move(call)), implementation_(std::move(implementation)) {}
  [[nodiscard]] std::string implementation() const override { return implementation_; }
  [[nodiscard]] const OpCall& call() const { return call_; }

 private:
  OpCall call_;
  std::string implementation_;
};
/// What was planned. Throws BackendError where the plan is no CollectivePlan.
[[nodiscard]] const OpCall& collective_of(const Plan& plan);

/// Holds the devices of all ranks back until the host has put an interval's work on their queues: else short
/// collectives measure how fast the host enqueues.
///
/// A gate is a kernel that spins on a number in the host's memory. It has a limit of its own, so that a rank which
/// fails before it has enqueued anything stops nobody for good.
class StartGate {
 public:
  /// So many steps of a rank may wait behind a gate; then it has arrived. A device's queue holds some thousand, and a
  /// host that waits for room in it would never open the gate.
  static constexpr int max_waiting = 256;
  /// The host needs 5 to 30 us for a step, so max_waiting of them take less than half of this.
  static constexpr std::uint64_t limit_ns = 20'000'000;

  explicit StartGate(std::size_t ranks);

  /// What is put on the stream from now on waits until every rank has arrived as often as this one has closed its gate.
  /// Called on the rank's thread with its device current. `place`: the rank's among those that share the gates.
  void close(std::size_t place, cudaStream_t stream);
  /// The rank has put its work behind the gate that it closed last. More calls before the next close() do nothing.
  void arrive(std::size_t place);
  /// Opens every gate and takes all ranks to the same turn, once none of them is at work.
  void reset();

 private:
  struct Turns {
    std::atomic<std::uint64_t> closed{0};
    std::atomic<std::uint64_t> arrived{0};
  };
  std::size_t ranks_;
  std::unique_ptr<Turns[]> turns_;
  std::shared_ptr<std::atomic<std::uint64_t>> opened_;  // pinned: devices read it
};

class CudaCommunicator : public Communicator {
 public:
  /// `held`: the ranks of this process; `devices`: the ordinal of the device of each. Makes a stream on each.
  CudaCommunicator(RankGroup held, std::vector<int> devices);

  /// Rank `rank`'s part, behind what is on the stream; every rank enqueues the same collectives in the same order.
  /// Called with the rank's device current. Throws RanksStopped after stop().
  virtual void enqueue(const Launch& launch, int rank, cudaStream_t stream) = 0;
  /// Holds back what is enqueued on the streams from now on until all ranks have come here.
  virtual void align(int rank, cudaStream_t stream) = 0;

  /// Returns once everything on the stream is done. Throws RanksStopped after stop(), leaving it undone.
  void wait(int rank, cudaStream_t stream);

  /// Holds the rank's device back until all ranks of this process have enqueued an interval (StartGate).
  void close_gate(int rank, cudaStream_t stream) { gate_.close(place(rank), stream); }
  void arrive_at_gate(int rank) { gate_.arrive(place(rank)); }
  /// Where a rank's collectives run beside its other work.
  [[nodiscard]] cudaStream_t stream(int rank) const { return streams_.at(place(rank)).get(); }
  /// Those of this process. No other rank may be given to anything here.
  [[nodiscard]] const RankGroup& held() const { return held_; }

  void run(const Launch& launch, int rank) override;
  void stop() override { stopped_ = true; }
  [[nodiscard]] bool restart() override;
  [[nodiscard]] std::vector<int> waiting() const override;

 protected:
  /// What is looked at while a rank waits. Throws BackendError for an error that the stream does not tell of.
  virtual void poll(int rank) = 0;
  /// The rank waits no longer, although its work is not done.
  virtual void give_up(int rank) = 0;

  /// Throws RanksStopped after stop(), once the rank has given up.
  void expect_running(int rank);
  void use_device_of(int rank) const;
  /// Of a rank among those held. Throws BackendError where it is not.
  [[nodiscard]] std::size_t place(int rank) const;

 private:
  RankGroup held_;
  std::vector<int> devices_;  // by place, as all below
  std::vector<Stream> streams_;
  StartGate gate_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

/// Several ranks on one GPU: a stream each, and collectives by own kernels in its memory. Everything that ranks do is
/// done, but no wire is crossed: a way to run and check programs of several ranks, not to measure them.
/// Throws BackendError for fewer than one rank or more than max_virtual_ranks.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_virtual_communicator(int ranks, int ordinal);

struct NcclCalls;

/// Ranks that work together by NCCL, a GPU each: all of them in this process, or some.
struct NcclRanks {
  int ranks = 0;             ///< of all processes
  RankGroup held{};          ///< of this one
  std::vector<int> devices;  ///< ordinals, of those held
  /// What the first member has in `bytes`, to the processes of all members. Never called where all ranks are held.
  std::function<void(const RankGroup& members, std::span<std::byte> bytes)> broadcast{};
  double deadline_s = 60.0;  ///< of setting up a communicator
};
/// One rank on each of so many GPUs of this process.
[[nodiscard]] NcclRanks nccl_ranks_on(std::vector<int> devices);

/// Communicators that block until their work is on a stream: for all ranks, and for each group whose first collective
/// is bound, made of that of all where NCCL can split one and all ranks are here. One thread per rank, and stop() on
/// another thread, which ends calls that hang (NCCL 2.28 user guide, "Fault Tolerance"). `calls` must outlive it.
/// Throws BackendError with NCCL's words where they cannot be set up, DeviceLost where they are not within the
/// deadline. With several processes, all do it at the same time, and the members of a group bind at the same time.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, NcclRanks ranks);

/// The collectives of this process's one rank, and its two lanes (open_rank_streams) on a stream of their own.
[[nodiscard]] std::unique_ptr<RankCollectives> open_nccl_collectives(const NcclCalls& calls, const NcclRanks& ranks);

/// The two lanes of a rank as two streams of its device.
/// Compute steps go to `compute`, collectives to the communicator's stream of the rank, or to `compute` as well where
/// there is nothing beside them. Both must outlive the result; called with the rank's device current.
[[nodiscard]] std::unique_ptr<RankQueues> open_rank_streams(CudaCommunicator& communicator, int rank,
                                                            cudaStream_t compute);

}  // namespace gpubench::cuda

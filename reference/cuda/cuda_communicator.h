// Communicators of several ranks: common parts, NCCL, and virtual ranks on one GPU. Collectives are enqueued on a
// stream; a wait for a stream ends if another rank fails.
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
/// Throws BackendError if the plan is not a CollectivePlan.
[[nodiscard]] const OpCall& collective_of(const Plan& plan);

/// Delays the devices of all ranks until the host has enqueued an interval's work; else timings of short collectives
/// measure how fast the host enqueues.
///
/// A gate is a kernel that spins on a number in host memory. It times out after limit_ns, so that a rank that fails
/// before it enqueues does not block the others.
class StartGate {
 public:
  /// Steps that a rank enqueues behind a gate before it counts as arrived. A device queue holds some thousand; if it
  /// filled up, the host would wait and never open the gate.
  static constexpr int max_waiting = 256;
  /// The host needs 5 to 30 us for a step: max_waiting of them take less than half of this limit.
  static constexpr std::uint64_t limit_ns = 20'000'000;

  explicit StartGate(std::size_t ranks);

  /// Later work on the stream waits until every rank has arrived as often as this one has closed its gate.
  /// Call on the rank's thread with its device current. `place`: index among the ranks that share the gates.
  void close(std::size_t place, cudaStream_t stream);
  /// Reports that the rank has enqueued its work behind its gate. Repeated calls before the next close() do nothing.
  void arrive(std::size_t place);
  /// Opens every gate and sets all ranks to the same turn. No rank may be at work.
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
  /// `held`: ranks of this process; `devices`: device ordinal of each. Makes a stream per rank.
  CudaCommunicator(RankGroup held, std::vector<int> devices);

  /// Enqueues rank `rank`'s part on the stream. Every rank must enqueue the same collectives in the same order, with
  /// its device current. Throws RanksStopped after stop().
  virtual void enqueue(const Launch& launch, int rank, cudaStream_t stream) = 0;
  /// Later work on the streams waits until all ranks have called this.
  virtual void align(int rank, cudaStream_t stream) = 0;

  /// Returns once the stream is done. Throws RanksStopped after stop(), with work left on the stream.
  void wait(int rank, cudaStream_t stream);

  /// Delays the rank's device until all ranks of this process have enqueued an interval (StartGate).
  void close_gate(int rank, cudaStream_t stream) { gate_.close(place(rank), stream); }
  void arrive_at_gate(int rank) { gate_.arrive(place(rank)); }
  /// The stream of the rank's collectives.
  [[nodiscard]] cudaStream_t stream(int rank) const { return streams_.at(place(rank)).get(); }
  /// Ranks of this process; the other functions accept no others.
  [[nodiscard]] const RankGroup& held() const { return held_; }

  void run(const Launch& launch, int rank) override;
  void stop() override { stopped_ = true; }
  [[nodiscard]] bool restart() override;
  [[nodiscard]] std::vector<int> waiting() const override;

 protected:
  /// Called repeatedly while a rank waits. Throws BackendError for an error that the stream does not report.
  virtual void poll(int rank) = 0;
  /// Called when the rank stops waiting with work left on its stream.
  virtual void give_up(int rank) = 0;

  /// Throws RanksStopped after stop(), and calls give_up() first.
  void expect_running(int rank);
  void use_device_of(int rank) const;
  /// Index among the held ranks. Throws BackendError for other ranks.
  [[nodiscard]] std::size_t place(int rank) const;

 private:
  RankGroup held_;
  std::vector<int> devices_;  // by place, as all below
  std::vector<Stream> streams_;
  StartGate gate_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

/// Several ranks on one GPU: a stream per rank, collectives by own kernels in device memory. For running and checking
/// programs of several ranks, not for measuring them, since no link is crossed.
/// Throws BackendError unless 1 <= ranks <= max_virtual_ranks.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_virtual_communicator(int ranks, int ordinal);

struct NcclCalls;

/// Ranks that communicate by NCCL, one GPU each; all or some of them in this process.
struct NcclRanks {
  int ranks = 0;             ///< in all processes
  RankGroup held{};          ///< in this process
  std::vector<int> devices;  ///< ordinals of the held ranks' devices
  /// Sends the first member's `bytes` to the processes of all members. Not called if all ranks are held.
  std::function<void(const RankGroup& members, std::span<std::byte> bytes)> broadcast{};
  double deadline_s = 60.0;  ///< for setting up a communicator
};
/// One rank on each of these GPUs of this process.
[[nodiscard]] NcclRanks nccl_ranks_on(std::vector<int> devices);

/// Blocking communicators: one of all ranks, and one per group, set up when its first collective is bound. Group
/// communicators are split from that of all ranks if NCCL can split and all ranks are held.
///
/// Needs one thread per rank, and another for stop(), which ends calls that hang (NCCL 2.28 user guide, "Fault
/// Tolerance"). `calls` must outlive the result. With several processes, all must call this at the same time, and a
/// group's members must bind at the same time.
/// Throws BackendError with NCCL's message if the set-up fails, DeviceLost if it exceeds the deadline.
[[nodiscard]] std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, NcclRanks ranks);

/// Collectives of this process's single rank, and its two lanes (open_rank_streams) on a separate stream.
[[nodiscard]] std::unique_ptr<RankCollectives> open_nccl_collectives(const NcclCalls& calls, const NcclRanks& ranks);

/// The two lanes of a rank as two streams of its device: compute steps on `compute`, collectives on the communicator's
/// stream. Collectives that overlap with nothing go to `compute` as well. Both arguments must outlive the result. Call
/// with the rank's device current.
[[nodiscard]] std::unique_ptr<RankQueues> open_rank_streams(CudaCommunicator& communicator, int rank,
                                                            cudaStream_t compute);

}  // namespace gpubench::cuda

// What the communicators of this backend have in common: a collective is enqueued on a stream, and waiting for a stream
// never outlasts a failure elsewhere.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "reference/cuda/runtime.h"
#include "reference/cuda/start_gate.h"

namespace gpubench::cuda {

/// Throws Unsupported unless it is a collective of dense tensors.
void expect_collective(const OpCall& call, std::span<const TensorSpec> tensors);

/// A collective that is to be had.
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

class CudaCommunicator : public Communicator {
 public:
  /// `devices`: the ordinal of each rank's device. Makes a stream on each.
  explicit CudaCommunicator(std::vector<int> devices);

  /// Rank `rank`'s part, behind what is on the stream; every rank enqueues the same collectives in the same order.
  /// Called with the rank's device current. Throws RanksStopped after stop().
  virtual void enqueue(const Launch& launch, int rank, cudaStream_t stream) = 0;
  /// Holds back what is enqueued on the streams from now on until all ranks have come here.
  virtual void align(int rank, cudaStream_t stream) = 0;

  /// Returns once everything on the stream is done. Throws RanksStopped after stop(), leaving it undone.
  void wait(int rank, cudaStream_t stream);

  /// What holds the ranks' devices back while an interval is enqueued.
  [[nodiscard]] StartGate& gate() { return gate_; }
  /// Where a rank's collectives run beside its other work.
  [[nodiscard]] cudaStream_t stream(int rank) const { return streams_.at(static_cast<std::size_t>(rank)).get(); }
  [[nodiscard]] int ranks() const { return static_cast<int>(devices_.size()); }

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
  void expect_going(int rank);
  void use_device_of(int rank) const;

 private:
  std::vector<int> devices_;
  std::vector<Stream> streams_;
  StartGate gate_;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

}  // namespace gpubench::cuda

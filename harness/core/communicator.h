// How the ranks of one program work together: collectives, and the devices that take part.
//
// A group of ranks has one thread for each. A collective is planned and bound once, for all of them, and run by every
// rank on its own thread: all ranks call run() with the same launches in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Thrown on the ranks that wait for a peer which has failed; only that peer reports the failure.
class RanksStopped : public std::runtime_error {
 public:
  RanksStopped() : std::runtime_error("stopped: another rank failed") {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// `tensors`: the specs of all ranks' inputs, then of all ranks' outputs, as in reference/ops/collective.h.
  /// Throws Unsupported where the op, the type or the layout is not available.
  [[nodiscard]] virtual Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) = 0;
  [[nodiscard]] virtual Launch bind(const Plan& plan, std::span<const Tensor> tensors) = 0;
  /// Rank `rank`'s part, complete on return. Throws RanksStopped once stop() has been called.
  virtual void run(const Launch& launch, int rank) = 0;

  /// Makes every rank that waits for a peer, now or later, throw RanksStopped. Any thread may call it.
  virtual void stop() = 0;
  /// Makes it usable again, once no rank is at work. False where that is impossible: the process has to end.
  [[nodiscard]] virtual bool restart() = 0;
  /// The ranks that are waiting for a peer at this moment.
  [[nodiscard]] virtual std::vector<int> waiting() const = 0;
};

// What one rank runs of a sequence: two lanes of steps, and which step waits for the other lane.

/// Bound work of a rank's backend, or of the communicator of all.
struct LaneStep {
  const Launch* work = nullptr;        ///< held by the sequence
  const std::string* label = nullptr;  ///< of the op; held by the sequence
  std::uint64_t waits_for = 0;         ///< how many steps of the other lane must be done
};

/// The lanes run side by side as far as data flow lets them, each in its order.
struct RankProgram {
  std::vector<LaneStep> compute;
  std::vector<LaneStep> communication;
};

/// The two lanes of one rank where its device has queues of its own, which the host only fills. Called on the rank's
/// thread. Waiting there for other ranks throws RanksStopped once the communicator has been stopped.
class RankQueues {
 public:
  /// Called with the label of each step before it is enqueued; the text outlives the work.
  using At = std::function<void(const std::string& label)>;

  virtual ~RankQueues() = default;
  /// Enqueues one run of the program.
  virtual void enqueue(const RankProgram& program, const At& at) = 0;
  /// Starts an interval, on all ranks' devices as simultaneously as possible; all ranks call it.
  virtual void begin() = 0;
  /// Returns once everything that was enqueued is done: nanoseconds since begin() by the device's clock.
  [[nodiscard]] virtual double end() = 0;
};

/// A communicator and one backend per rank, as a folder of reference/ opens them.
struct RankSet {
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Communicator> communicator;
  /// One for each rank; empty where the host's own threads do the work.
  std::vector<std::unique_ptr<RankQueues>> queues = {};
  /// Called once on each rank's thread before anything else: binds it to its cores, or its device.
  std::function<void(int rank)> enter = [](int) {};
  /// All ranks together: processors or SMs, and memory, with nothing counted twice.
  DeviceInfo device = {};
  /// Caveats on every number: "oversubscribed", "virtual".
  std::vector<std::string> flags = {};
};

}  // namespace gpubench

// What lets the ranks of one program work together: collectives, and the devices that they lie between.
//
// A group of ranks has one thread for each. A collective is planned and bound once, for all of them, and run by every
// rank on its own thread: all ranks call run() with the same launches in the same order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Thrown on the ranks that wait for a peer which has failed: what went wrong is told by that peer alone.
class RanksStopped : public std::runtime_error {
 public:
  RanksStopped() : std::runtime_error("stopped: another rank failed") {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// `tensors`: the specs of all ranks' inputs, then of all ranks' outputs, as in reference/ops/collective.h.
  /// Throws Unsupported where the op, the type or the layout is not to be had.
  [[nodiscard]] virtual Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) = 0;
  [[nodiscard]] virtual Launch bind(const Plan& plan, std::span<const Tensor> tensors) = 0;
  /// Rank `rank`'s part, complete on return. Throws RanksStopped once stop() has been called.
  virtual void run(const Launch& launch, int rank) = 0;

  /// Makes every rank that waits for a peer, now or later, throw RanksStopped. Any thread may call it.
  virtual void stop() = 0;
  /// Ready again, once no rank is in run() any more.
  virtual void restart() = 0;
  /// The ranks that are waiting for a peer at this moment.
  [[nodiscard]] virtual std::vector<int> waiting() const = 0;
};

/// A communicator and one backend per rank, as a folder of reference/ opens them.
struct RankSet {
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Communicator> communicator;
  /// Called once on each rank's thread before anything else: takes it to its cores, or its device.
  std::function<void(int rank)> enter = [](int) {};
  /// Processors or SMs of all ranks together, none counted twice.
  int units = 0;
  /// What every number has to be read with: "oversubscribed", "virtual".
  std::vector<std::string> flags = {};
};

}  // namespace gpubench

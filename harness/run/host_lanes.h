// The two lanes of a rank whose work the host itself does: two threads, one for each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "harness/core/communicator.h"
#include "harness/core/rank_sync.h"

namespace gpubench {

class HostLanes {
 public:
  /// What a lane does of a step, and what it is told before it waits for the other lane.
  struct Hooks {
    std::function<void(const LaneStep& step)> compute;
    std::function<void(const LaneStep& step)> communicate;
    std::function<void()> waiting;
  };
  explicit HostLanes(Hooks hooks) : hooks_(std::move(hooks)) {}

  /// The compute lane: one run of both lanes, complete on return.
  void run(const RankProgram& program);
  /// The compute lane: there are no more runs.
  void finish();
  /// The communication lane: run after run, until there is none.
  void serve();

  /// Makes every wait, now or later, throw RanksStopped. Any thread may call it.
  void stop();
  /// Ready again, once nobody is in any of the above.
  void reset();

 private:
  void await(const Progress& progress, std::uint64_t goal) const;

  Hooks hooks_;
  Progress begun_;     // runs that the compute lane has begun
  Progress computed_;  // steps done in the present run and those before
  Progress communicated_;
  std::atomic<const RankProgram*> program_{nullptr};  // of the run that has begun; null: no more runs
  std::uint64_t computed_before_ = 0;                 // steps of all earlier runs
  std::uint64_t communicated_before_ = 0;
};

}  // namespace gpubench

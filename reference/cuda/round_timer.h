// One timed round on a stream: warm-up, then samples by the device's own clock and by the host's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "reference/cuda/sequence.h"

namespace gpubench::cuda {

class RoundTimer {
 public:
  explicit RoundTimer(cudaStream_t stream) : stream_(stream) {}

  /// As Backend::time(). Short samples are taken twice: once queued behind each other, by events, so that the device
  /// never waits for the host; once alone, by the host's clock, device idle at both ends. Long ones (above 5 ms) are
  /// taken once, by both.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan);

 private:
  /// Returns nanoseconds of one run, roughly. `calls`: how many there were.
  double warm_up(const RoundPlan& plan, std::int64_t& calls);
  void queued(const RoundPlan& plan, double run_ns, RoundTimes& times);
  void alone(const RoundPlan& plan, bool by_events, RoundTimes& times);
  void make_events(int samples);
  [[nodiscard]] double elapsed_ns(int sample) const;
  void wait() const;

  cudaStream_t stream_;
  std::unique_ptr<RunQueue> queue_;  // kept while rounds of the same case follow each other
  std::vector<Event> begin_;
  std::vector<Event> end_;
};

}  // namespace gpubench::cuda

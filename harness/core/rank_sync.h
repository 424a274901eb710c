// How the threads of ranks wait for each other, so that a failure ends every wait.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/core/mesh.h"

namespace gpubench {

/// A number that grows, and threads that wait for it.
class Progress {
 public:
  void advance();
  /// Returns once the number is at least `goal`. Spins `spins` times first, which is faster than sleeping where every
  /// waiter has a core of its own, and keeps others from working where not. Throws RanksStopped after stop().
  void wait_for(std::uint64_t goal, int spins) const;
  [[nodiscard]] std::uint64_t value() const { return number_.load(std::memory_order_acquire) & ~stopped_bit; }
  void stop();
  /// Back to 0, and not stopped. No thread may be waiting.
  void reset() { number_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint64_t stopped_bit = std::uint64_t{1} << 63U;
  std::atomic<std::uint64_t> number_{0};
};

/// A reusable barrier: no rank leaves before all have arrived.
class RankBarrier {
 public:
  RankBarrier(int ranks, int spins);
  /// Throws RanksStopped after stop().
  void arrive(int rank);
  void stop() { generation_.stop(); }
  /// No rank may be in arrive().
  void reset();
  /// Ranks that have arrived and wait for the others.
  [[nodiscard]] std::vector<int> waiting() const;
  /// How often all have arrived.
  [[nodiscard]] std::uint64_t meetings() const { return generation_.value(); }

 private:
  int ranks_;
  int spins_;
  std::atomic<int> arrived_{0};
  Progress generation_;
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

// The barriers of the groups of ranks of one process.

/// One point for each group, made when the group's first collective is bound; any thread may stop or query them.
/// A Point is constructed from a RankGroup, and has `RankGroup members` and `RankBarrier barrier`.
template <class Point>
class MeetingPoints {
 public:
  /// The point of a group; its address never changes. `more`: constructor arguments of a new one, after the group.
  template <class... More>
  [[nodiscard]] Point& of(const RankGroup& members, const More&... more) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(points_.begin(), points_.end(), [&](const auto& point) { return point->members == members; });
    if (found != points_.end()) return **found;
    return *points_.emplace_back(std::make_unique<Point>(members, more...));
  }

  template <class Work>
  void for_each(const Work& work) const {
    const std::lock_guard lock(mutex_);
    for (const auto& point : points_) work(*point);
  }

  void stop() {
    for_each([](Point& point) { point.barrier.stop(); });
  }

  /// Ranks that have arrived and wait for the others, ascending.
  [[nodiscard]] std::vector<int> waiting() const {
    std::vector<int> ranks;
    for_each([&ranks](const Point& point) {
      for (const int member : point.barrier.waiting()) ranks.push_back(point.members[member]);
    });
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Point>> points_;
};

}  // namespace gpubench

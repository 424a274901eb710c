// Where the groups of ranks of one process meet.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/core/mesh.h"
#include "harness/core/rank_sync.h"

namespace gpubench {

/// One place for each group, made when the group's first collective is bound; stopped and asked from any thread.
/// A Point is constructed from a RankGroup, and has `RankGroup members` and `RankBarrier barrier`.
template <class Point>
class MeetingPoints {
 public:
  /// That of a group. It stays where it is. `more`: what a new one is constructed from beside the group.
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

  /// Ranks that have come to a meeting and wait for the others, ascending.
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

// Collectives, the devices that take part, and how the threads of ranks wait for each other: a failure ends every wait.
//
// A group has one thread per rank. A collective is planned and bound once for all ranks and run by each rank on its
// thread: all ranks call run() with the same launches in the same order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/mesh.h"

namespace gpubench {

/// Thrown on ranks that wait for a failed peer; only the peer reports the failure.
class RanksStopped : public std::runtime_error {
 public:
  RanksStopped() : std::runtime_error("stopped: another rank failed") {}
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// `tensors`: the specs of all ranks' inputs, then of all ranks' outputs, as in reference/ops/collective.h. Throws
  /// Unsupported if the op, the type or the layout is not available.
  [[nodiscard]] virtual Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) = 0;
  [[nodiscard]] virtual Launch bind(const Plan& plan, std::span<const Tensor> tensors) = 0;
  /// Runs the part of rank `rank`, complete on return. Throws RanksStopped after stop().
  virtual void run(const Launch& launch, int rank) = 0;

  /// Makes every rank that waits for a peer, now or later, throw RanksStopped. Thread-safe.
  virtual void stop() = 0;
  /// Makes it usable again after all ranks have left. False if that is impossible: the process has to end.
  [[nodiscard]] virtual bool restart() = 0;
  [[nodiscard]] virtual std::vector<int> waiting() const = 0;
};

// A rank's part of a sequence: two lanes of steps, and the dependencies between them.

struct LaneStep {
  const Launch* work = nullptr;        ///< owned by the sequence
  const std::string* label = nullptr;  ///< of the op; owned by the sequence
  std::uint64_t waits_for = 0;         ///< number of steps of the other lane that must be done
};

/// Each lane runs in order, concurrently with the other as far as dependencies allow.
struct RankProgram {
  std::vector<LaneStep> compute;
  std::vector<LaneStep> communication;
  /// Whether any rank computes meanwhile: decides, equally for all members, how a collective waits.
  bool overlaps_compute = false;
};

/// The two lanes of one rank as device queues that the host fills. Called on the rank's thread. Waiting for other ranks
/// throws RanksStopped after the communicator's stop().
class RankQueues {
 public:
  /// Called with the label of each step before it is enqueued; the text outlives the work.
  using At = std::function<void(const std::string& label)>;

  virtual ~RankQueues() = default;
  virtual void enqueue(const RankProgram& program, const At& at) = 0;
  /// Starts an interval on all ranks' devices as simultaneously as possible; all ranks call it.
  virtual void begin() = 0;
  /// Waits for all enqueued work; returns nanoseconds since begin() by the device's clock.
  [[nodiscard]] virtual double end() = 0;
};

struct RankSet {
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Communicator> communicator;
  /// One per rank; empty if host threads do the work.
  std::vector<std::unique_ptr<RankQueues>> queues = {};
  /// Called once on each rank's thread before anything else: binds it to its cores or device.
  std::function<void(int rank)> enter = [](int) {};
  /// All ranks together: processors or SMs, and memory, with nothing counted twice.
  DeviceInfo device = {};
  /// Caveats on every number: "oversubscribed", "virtual".
  std::vector<std::string> flags = {};
  /// The ranks are in other processes and measure there: their times also replace the local wall time, which would
  /// include the messages.
  bool timed_where_they_are = false;
};

class Progress {
 public:
  void advance();
  /// Returns when the number is at least `goal`. Spins `spins` times first: faster than sleeping if every waiter has a
  /// core; otherwise it slows down others. Throws RanksStopped after stop().
  void wait_for(std::uint64_t goal, int spins) const;
  [[nodiscard]] std::uint64_t value() const { return number_.load(std::memory_order_acquire) & ~stopped_bit; }
  void stop();
  /// Sets 0 and clears stop(). No thread may be waiting.
  void reset() { number_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint64_t stopped_bit = std::uint64_t{1} << 63U;
  std::atomic<std::uint64_t> number_{0};
};

class RankBarrier {
 public:
  RankBarrier(int ranks, int spins);
  void arrive(int rank);
  void stop() { generation_.stop(); }
  void reset();
  [[nodiscard]] std::vector<int> waiting() const;
  /// The number of completed barriers.
  [[nodiscard]] std::uint64_t meetings() const { return generation_.value(); }

 private:
  int ranks_;
  int spins_;
  std::atomic<int> arrived_{0};
  Progress generation_;
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

/// One point per group, created when the group's first collective is bound; thread-safe. A Point is constructed from a
/// RankGroup, and has `RankGroup members` and `RankBarrier barrier`.
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

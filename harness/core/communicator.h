// How the ranks of one program work together: collectives, the devices that take part, and how their threads wait for
// each other, so that a failure ends every wait.
//
// A group of ranks has one thread for each. A collective is planned and bound once, for all of them, and run by every
// rank on its own thread: all ranks call run() with the same launches in the same order.
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
  /// Whether any rank computes in it, with or without this one: how the members of a collective wait, all alike.
  bool overlaps_compute = false;
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
  /// What the queues tell is taken where the ranks are, in other processes: it stands for the time here as well, which
  /// would include the way there and back.
  bool timed_where_they_are = false;
};

// How the threads of ranks wait for each other, so that a failure ends every wait.

/// A number that grows, and threads that wait for it.
class Progress {
 public:
  void advance();
  /// Returns once the number is at least `goal`. Spins `spins` times first: faster than sleeping if every waiter has a
  /// core of its own; otherwise it keeps others from working. Throws RanksStopped after stop().
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

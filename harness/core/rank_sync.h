// How the threads of ranks wait for each other, such that a failure ends every wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace gpubench {

/// A number that grows, and threads that wait for it.
class Progress {
 public:
  void advance();
  /// Returns once the number is at least `goal`. Spins `spins` times first: where every waiter has a core of its own
  /// that is faster than sleeping, else it keeps others from working. Throws RanksStopped after stop().
  void wait_for(std::uint64_t goal, int spins) const;
  [[nodiscard]] std::uint64_t value() const { return number_.load(std::memory_order_acquire) & ~stopped_bit; }
  void stop();
  /// Back to 0, and not stopped. Nobody may be waiting.
  void reset() { number_.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint64_t stopped_bit = std::uint64_t{1} << 63U;
  std::atomic<std::uint64_t> number_{0};
};

/// Nobody leaves before all have come; again and again.
class RankBarrier {
 public:
  RankBarrier(int ranks, int spins);
  /// Throws RanksStopped after stop().
  void arrive(int rank);
  void stop() { generation_.stop(); }
  /// Nobody may be in arrive().
  void reset();
  /// Ranks that have come and wait for the others.
  [[nodiscard]] std::vector<int> waiting() const;
  /// How often all have met.
  [[nodiscard]] std::uint64_t meetings() const { return generation_.value(); }

 private:
  int ranks_;
  int spins_;
  std::atomic<int> arrived_{0};
  Progress generation_;
  std::unique_ptr<std::atomic<bool>[]> waits_;
};

}  // namespace gpubench

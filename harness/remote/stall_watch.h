// Detects processes that are silent, or that hold up the others.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/remote/requests.h"

namespace gpubench {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// `limit_s`: limit of the silence of one process, and of the time without progress of all busy ones; 0: no limit.
  StallWatch(std::vector<std::string> names, double limit_s);

  void begin(int rank);
  void heard(int rank, const Heartbeat& beat);
  void end(int rank);

  /// To be called repeatedly during a wait for `rank`. Throws DeviceLost if any busy process is silent, or if no busy
  /// process makes progress and `rank` is the first of the culprits. Every later call throws RanksStopped.
  void look(int rank, Clock::time_point now = Clock::now());

  [[nodiscard]] std::vector<int> waiting() const;
  /// Names of the processes that have not answered yet, by rank.
  [[nodiscard]] std::vector<std::string> at_work() const;
  /// Reason of the loss; empty: nothing lost.
  [[nodiscard]] std::string lost() const;
  /// Records an error that leaves a process in an unknown state. Keeps the first.
  void lose(const std::string& why);

 private:
  struct Rank {
    std::string name;
    bool busy = false;
    Heartbeat last{};
    Clock::time_point moved{};
    Clock::time_point heard{};
  };
  [[nodiscard]] bool older(Clock::time_point since, Clock::time_point now) const;
  [[nodiscard]] static std::string place_of(const Rank& rank);
  /// The busy ranks that wait for no peer, or all busy ones if all wait; none while any of them makes progress.
  [[nodiscard]] std::vector<int> culprits(Clock::time_point now) const;

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  double limit_s_;
  std::string lost_;
};

/// Reports a long wait while the waiting thread is inside a library, such as in MPI_Init.
class Alarm {
 public:
  /// Calls `ring` once after `after_s` on a separate thread, unless destroyed before; 0: never.
  Alarm(double after_s, std::function<void()> ring);

 private:
  std::jthread thread_;
};

}  // namespace gpubench

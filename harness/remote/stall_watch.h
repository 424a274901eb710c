// Whether processes that are at work come any further: which of them holds up the others, and which is not heard of.
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
  /// `limit_s`: so long may a process be silent, and so long may all that are at work come no further; 0: for ever.
  StallWatch(std::vector<std::string> names, double limit_s);

  /// Rank `rank` was asked for something.
  void begin(int rank);
  void heard(int rank, const Heartbeat& beat);
  /// It has answered.
  void end(int rank);

  /// Called again and again by who waits for the rank. Throws DeviceLost where one at work is not heard of, and where
  /// nobody comes any further and this rank is to blame, since it is in no wait for a peer: "process 1 (pid 17 on b)
  /// has come no further for 15 s, last in 'y'; rank 0 was waiting". After that every call throws RanksStopped.
  void look(int rank, Clock::time_point now = Clock::now());

  [[nodiscard]] std::vector<int> waiting() const;
  /// The names of those that have not answered what they were asked for, by rank.
  [[nodiscard]] std::vector<std::string> at_work() const;
  /// Why nothing can run any more; empty while it can.
  [[nodiscard]] std::string lost() const;
  /// For an error that leaves a process in an unknown state. Keeps the first.
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
  /// The ranks that hold up the others; none while any of them comes further.
  [[nodiscard]] std::vector<int> culprits(Clock::time_point now) const;

  mutable std::mutex mutex_;
  std::vector<Rank> ranks_;
  double limit_s_;
  std::string lost_;
};

/// Reports a wait that lasts too long while the waiting thread is inside a library, such as MPI_Init.
class Alarm {
 public:
  /// Calls `ring` once after `after_s`, on its own thread, unless it is destroyed before; 0: never.
  Alarm(double after_s, std::function<void()> ring);

 private:
  std::jthread thread_;
};

}  // namespace gpubench

// The lanes of a rank in the process that has it: an interval of programs that process 0 has sent, timed here; and what
// the process says meanwhile.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "harness/core/processes.h"
#include "harness/remote/message.h"
#include "harness/remote/requests.h"
#include "harness/run/rank_group.h"

namespace gpubench {

/// How far a process is: one thread at a time writes each of its two lanes, another reads both. No store waits for
/// anything, since short ops are timed with it.
class WorkProgress {
 public:
  /// One of the lanes.
  class Lane {
   public:
    void begin(const std::string* label) {
      label_.store(label, std::memory_order_release);  // with its text
      busy_.store(true, std::memory_order_relaxed);
      step();
    }
    void end() {
      busy_.store(false, std::memory_order_relaxed);
      step();
    }

   private:
    friend WorkProgress;
    void step() { steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

    std::atomic<const std::string*> label_{nullptr};
    std::atomic<bool> busy_{false};
    std::atomic<std::uint64_t> steps_{0};
  };

  /// The texts that a lane is given must live as long as this.
  [[nodiscard]] Lane& compute() { return compute_; }
  [[nodiscard]] Lane& communication() { return communication_; }
  [[nodiscard]] Heartbeat beat() const;

 private:
  Lane compute_, communication_;
};

/// What a request of process 0 has bound here.
struct ServedLaunch {
  Launch work;
  const std::string* label = nullptr;  ///< lives as long as the server
  bool is_collective = false;
};

/// A rank's part of a sequence, with all that it points to.
struct ServedProgram {
  RankProgram program;
  std::vector<std::shared_ptr<const ServedLaunch>> held;
};

class ServedLanes {
 public:
  explicit ServedLanes(WorkProgress& progress);
  ~ServedLanes();
  ServedLanes(const ServedLanes&) = delete;
  ServedLanes& operator=(const ServedLanes&) = delete;

  /// Runs the programs one after the other: nanoseconds. `align`: once all ranks of the set are here; then a rank that
  /// has queues runs them there. Throws what an op threw: of the host's own lanes after all collectives have been run.
  [[nodiscard]] double time(Backend& backend, RankCollectives& collectives, std::span<const ServedProgram* const> order,
                            bool align);

 private:
  [[nodiscard]] double time_on(RankQueues& queues, std::span<const ServedProgram* const> order);
  void compute(const LaneStep& step);
  void communicate(const LaneStep& step, bool overlaps_compute);
  void run(const RankProgram& program);
  void keep(std::exception_ptr failure);
  void serve_communication();

  WorkProgress& progress_;
  HostLanes lanes_;
  Backend* backend_ = nullptr;  // of the interval
  RankCollectives* collectives_ = nullptr;
  std::atomic<bool> failed_{false};   // an op: no other one is run
  std::atomic<bool> cut_off_{false};  // a collective: no other one can be run
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;  // the first
  bool serving_ = false;        // the communication lane has an interval to do
  bool ending_ = false;
  std::thread communication_;  // last: uses all of the above
};

/// What a process answers, and that it is at work meanwhile: sends on behalf of two threads, one of which only beats
/// while the other is at work.
class Answerer {
 public:
  Answerer(Channel& channel, const WorkProgress& progress)
      : channel_(channel), progress_(progress), beating_([this] { beat(); }) {}
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;
  ~Answerer() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    beating_.join();
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  void answer(const MessageWriter& message) {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    channel_.send(message.bytes());
  }
  /// The request has no answer.
  void skip_answer() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }

 private:
  void beat();

  Channel& channel_;
  const WorkProgress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread beating_;  // last: uses all of the above
};

}  // namespace gpubench

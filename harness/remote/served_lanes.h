// The lanes of a rank in its own process: they run and time an interval of programs sent by process 0. Also the beats
// that the process sends meanwhile.
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

/// Progress of a process: at most one thread writes each lane, another thread reads both. Stores must not block: they
/// are inside the time of short ops.
class WorkProgress {
 public:
  class Lane {
   public:
    void begin(const std::string* label) {
      label_.store(label, std::memory_order_release);  // publishes its text
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

  /// The labels must outlive this.
  [[nodiscard]] Lane& compute() { return compute_; }
  [[nodiscard]] Lane& communication() { return communication_; }
  [[nodiscard]] Heartbeat beat() const;

 private:
  Lane compute_, communication_;
};

struct ServedLaunch {
  Launch work;
  const std::string* label = nullptr;  ///< owned by the server
  bool is_collective = false;
};

/// A rank's part of a sequence, and the launches it points to.
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

  /// Runs the programs one after the other; returns nanoseconds. `align`: starts when all ranks of the set have
  /// arrived, on the rank's queues if it has them. Rethrows the exception of an op; on host lanes after all
  /// collectives have run.
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
  Backend* backend_ = nullptr;
  RankCollectives* collectives_ = nullptr;
  std::atomic<bool> failed_{false};   // an op failed: run no other one
  std::atomic<bool> cut_off_{false};  // a collective failed: run no other one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;  // the first
  bool serving_ = false;        // the communication lane is in an interval
  bool ending_ = false;
  std::thread communication_;  // last: uses all of the above
};

/// Sends answers, and beats from a second thread while a request is served.
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
  /// Ends a request that has no answer.
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

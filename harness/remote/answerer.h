// What a process answers, and that it is at work meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "harness/core/processes.h"
#include "harness/remote/message.h"
#include "harness/remote/served_lanes.h"

namespace gpubench {

/// Sends on behalf of two threads, one of which only beats while the other is at work.
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
  void say_nothing() {
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

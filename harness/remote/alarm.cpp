#include "harness/remote/alarm.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace gpubench {

Alarm::Alarm(double after_s, std::function<void()> ring) {
  if (after_s <= 0.0) return;
  thread_ = std::jthread([after_s, ring = std::move(ring)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    (void)stopped.wait_for(lock, stop, std::chrono::duration<double>(after_s), [] { return false; });
    if (!stop.stop_requested()) ring();
  });
}

}  // namespace gpubench

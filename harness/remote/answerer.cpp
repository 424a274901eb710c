#include "harness/remote/answerer.h"

#include <chrono>
#include <exception>

#include "harness/remote/requests.h"

namespace gpubench {

void Answerer::beat() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(beat_every_s), [this] { return ending_; })) {
    if (!busy_) continue;
    const Beat beat = progress_.beat();
    MessageWriter message;
    message.put(Answer::beat);
    message.put(beat.steps);
    message.put(beat.waits);
    message.put(beat.label);
    try {
      channel_.send(message.bytes());
    } catch (const std::exception&) {
      return;  // the thread that answers meets the same error, and tells
    }
  }
}

}  // namespace gpubench

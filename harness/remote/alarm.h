// Reports a wait that lasts too long while the waiting thread is inside a library, such as MPI_Init.
#pragma once

#include <functional>
#include <thread>

namespace gpubench {

class Alarm {
 public:
  /// Calls `ring` once after `after_s`, on its own thread, unless it is destroyed before; 0: never.
  Alarm(double after_s, std::function<void()> ring);

 private:
  std::jthread thread_;
};

}  // namespace gpubench

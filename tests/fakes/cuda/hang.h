// Makes the fake drivers hang in the call named by GPUBENCH_FAKE_HANG, like a driver that waits for a lost device.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gpubench {

/// Prints "hangs in CALL" to standard error and hangs in the named call; returns at once in others.
inline void hang_in(std::string_view call) {
  const char* wanted = std::getenv("GPUBENCH_FAKE_HANG");
  if (wanted == nullptr || call != wanted) return;
  std::fprintf(stderr, "hangs in %s\n", wanted);
  while (true) ::pause();
}

}  // namespace gpubench

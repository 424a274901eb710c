// How the fake drivers hang: in the call that the variable GPUBENCH_FAKE_HANG names, for ever, like one that waits for
// a device that does not come back.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gpubench {

/// Returns at once from every call but that one, where it says on standard error "hangs in CALL".
inline void hang_in(std::string_view call) {
  const char* wanted = std::getenv("GPUBENCH_FAKE_HANG");
  if (wanted == nullptr || call != wanted) return;
  std::fprintf(stderr, "hangs in %s\n", wanted);
  while (true) ::pause();
}

}  // namespace gpubench

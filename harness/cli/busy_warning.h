// What a run says at its start where other work has the processors: after it, nobody can tell what was lost.
#pragma once

#include <string>

#include "harness/hardware/host.h"

namespace gpubench {

/// "warning: tasks waited for a processor during 82% of the last 10 s: ..."; empty on a quiet machine. By the kernel's
/// pressure, and where it tells none by the load average, as doctor's D205 and D206 do.
[[nodiscard]] std::string busy_warning(const HostInfo& host);

}  // namespace gpubench

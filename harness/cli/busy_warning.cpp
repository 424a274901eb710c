#include "harness/cli/busy_warning.h"

#include <fmt/format.h>

#include "harness/hardware/doctor.h"

namespace gpubench {

std::string busy_warning(const HostInfo& host) {
  const std::optional<Finding> finding = busy_finding(host);
  // The load average still counts what ended a minute ago, such as the build of this program; pressure does not.
  if (!finding || (finding->health == Health::note && host.cpu_pressure)) return "";
  return fmt::format("warning: {} ({}): timings will be unreliable, and the run takes longer than it says; {}",
                     finding->text, finding->code, finding->fix);
}

}  // namespace gpubench

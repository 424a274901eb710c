#include "harness/cli/processors.h"

#include "harness/cli/device.h"

namespace gpubench {

int usable_processors() {
  cpu_set_t all;
  return ::sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 0;
}

OnProcessors::OnProcessors(int count, int skipped) {
  if (::sched_getaffinity(0, sizeof all_, &all_) != 0) throw CannotMeasure("cannot tell which processors there are");
  cpu_set_t fewer;
  CPU_ZERO(&fewer);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE && CPU_COUNT(&fewer) < count; ++cpu) {
    if (CPU_ISSET(cpu, &all_) && seen++ >= skipped) CPU_SET(cpu, &fewer);
  }
  if (::sched_setaffinity(0, sizeof fewer, &fewer) != 0)
    throw CannotMeasure("cannot choose the processors of another process");
}

}  // namespace gpubench

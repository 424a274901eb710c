// run_in_process(): the engine without a worker, for debuggers, profilers and tests.
#include "harness/run/engine.h"

namespace gpubench {

void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop) {
  Engine(backend, options).run(cases, observer, stop);
}

}  // namespace gpubench

// gpubench-sim: the whole program on a backend that fails on demand. GPUBENCH_SIM_SCRIPT says how
// (tests/sim/sim_script.h).
#include <cstdlib>

#include "harness/cli/program.h"
#include "tests/cli/sim_environment.h"

int main(int argc, char** argv) {
  const char* script = std::getenv("GPUBENCH_SIM_SCRIPT");
  return gpubench::run_program(argc, argv, gpubench::sim_suites(),
                               gpubench::sim_backends(script == nullptr ? "" : script));
}

// gpubench-gbench-sim: gpubench-gbench on a backend that fails as GPUBENCH_SIM_SCRIPT says.
#include <cstdlib>

#include "harness/cli/run_cli.h"
#include "tests/harness/cli/sim_environment.h"

int main(int argc, char** argv) {
  using namespace gpubench;
  const char* script = std::getenv("GPUBENCH_SIM_SCRIPT");
  return run_gbench(argc, argv,
                    process_environment(argc, argv, sim_suites(), sim_backends(script == nullptr ? "" : script)));
}

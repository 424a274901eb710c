// gpubench-sim: the program on a backend that fails as GPUBENCH_SIM_SCRIPT says (tests/fakes/sim/sim_script.h).
// GPUBENCH_SIM_MODULE: the folder of a CUDA module.
#include <cstdlib>
#include <filesystem>

#include "harness/cli/cuda_module.h"
#include "harness/cli/run_cli.h"
#include "tests/harness/cli/sim_environment.h"

int main(int argc, char** argv) {
  const char* script = std::getenv("GPUBENCH_SIM_SCRIPT");
  std::vector<gpubench::BackendEntry> backends = gpubench::sim_backends(script == nullptr ? "" : script);
  if (const char* folder = std::getenv("GPUBENCH_SIM_MODULE"); folder != nullptr) {
    if (auto cuda = gpubench::cuda_entry(std::filesystem::path(folder) / "gpubench")) backends.push_back(*cuda);
  }
  return gpubench::run_program(argc, argv, gpubench::sim_suites(), std::move(backends));
}

// The program gpubench: the real suites and backends.
#include "harness/cli/cuda_module.h"
#include "harness/cli/program.h"
#include "harness/cli/revision.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"

int main(int argc, char** argv) {
  using namespace gpubench;
  std::vector<BackendEntry> backends{{"cpu", [](int /*the only one*/) { return open_cpu_backend(); },
                                      [] {
                                        return std::vector<std::string>{"f32", "bf16"};
                                      }}};
  if (std::optional<BackendEntry> cuda = cuda_entry(own_path(argc > 0 ? argv[0] : ""))) backends.push_back(*cuda);
  return run_program(argc, argv, all_suites(), std::move(backends), built_revision());
}

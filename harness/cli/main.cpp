// The program gpubench: the real suites and backends.
#include <utility>

#include "harness/cli/cuda_module.h"
#include "harness/cli/program.h"
#include "harness/cli/revision.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/cpu_ranks.h"
#include "suites/suites.h"

int main(int argc, char** argv) {
  using namespace gpubench;
  BackendEntry cpu;
  cpu.name = "cpu";
  cpu.open = [](const OpenRequest&) { return open_cpu_backend(); };  // there is one, which is always deterministic
  cpu.precisions = [](int /*no GPU*/) { return std::vector<std::string>{"f32", "bf16"}; };
  cpu.open_ranks = [](const RankRequest& what) { return open_cpu_ranks(what.ranks); };
  std::vector<BackendEntry> backends{std::move(cpu)};
  if (std::optional<BackendEntry> cuda = cuda_entry(own_path(argc > 0 ? argv[0] : ""))) backends.push_back(*cuda);
  return run_program(argc, argv, all_suites(), std::move(backends), built_revision());
}

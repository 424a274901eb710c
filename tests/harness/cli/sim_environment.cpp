#include "tests/harness/cli/sim_environment.h"

#include "tests/fakes/sim/sim_backend.h"
#include "tests/fakes/sim/sim_suite.h"

namespace gpubench {

std::span<const Suite> sim_suites() {
  static const std::vector<Suite> suites = [] {
    Suite suite{"sim", "tiny cases for tests", {}};
    for (const PlannedCase& planned : sim::sim_cases()) suite.workloads.push_back(planned.workload);
    return std::vector<Suite>{suite};
  }();
  return suites;
}

std::vector<BackendEntry> sim_backends(const std::string& script) {
  return {{"sim", [script](const OpenRequest& what) {
             std::size_t begin = 0;
             for (int device = 0; device < what.ordinal && script.find('|', begin) != std::string::npos; ++device)
               begin = script.find('|', begin) + 1;
             return open_sim_backend(script.substr(begin, script.find('|', begin) - begin));
           }}};
}

}  // namespace gpubench

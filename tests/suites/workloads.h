// The workloads of the suites by name.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "suites/suites.h"

namespace gpubench::testing {

/// Throws where there is no such workload. `suite`: any where it is empty.
inline std::shared_ptr<const Workload> workload_named(const std::string& suite, const std::string& name) {
  for (const Suite& one : all_suites()) {
    for (const auto& workload : one.workloads) {
      if ((suite.empty() || one.name == suite) && workload->info().name == name) return workload;
    }
  }
  throw std::runtime_error("no workload " + suite + "/" + name);
}

/// The program of a case of these suites.
inline Program program_of(const Case& c) { return workload_named(c.suite, c.workload)->build(c); }

}  // namespace gpubench::testing

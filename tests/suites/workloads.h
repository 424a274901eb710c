#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "suites/suites.h"

namespace gpubench::testing {

/// Throws if there is no such workload. `suite`: empty for any.
inline std::shared_ptr<const Workload> workload_named(const std::string& suite, const std::string& name) {
  for (const Suite& one : all_suites()) {
    for (const auto& workload : one.workloads) {
      if ((suite.empty() || one.name == suite) && workload->info().name == name) return workload;
    }
  }
  throw std::runtime_error("no workload " + suite + "/" + name);
}

inline Program program_of(const Case& c) { return workload_named(c.suite, c.workload)->build(c); }

}  // namespace gpubench::testing

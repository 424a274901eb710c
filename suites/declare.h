// A workload from its four declarations, so that a suite file holds nothing but shapes and programs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "harness/core/workload.h"

namespace gpubench::suites {

/// What a workload consists of; Workload's members with the same names.
struct Declaration {
  WorkloadInfo info;
  Grid grid;
  std::function<Program(const Case&, const Recipe&)> build;
  std::function<double(const Case&)> items;
};

/// A workload of one rank: build() is given the case's recipe.
[[nodiscard]] std::shared_ptr<const Workload> declare(Declaration declaration);

}  // namespace gpubench::suites

// A workload from its four declarations, so that a suite file holds nothing but shapes and programs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/workload.h"

namespace gpubench::suites {

/// What a workload consists of; Workload's members with the same names.
struct Declaration {
  WorkloadInfo info;
  Grid grid;
  std::function<Program(const Case&, const Recipe&)> build;
  std::function<double(const Case&)> items;
};

/// Recipes of workloads that contract tensors, or hold whole steps: every one in which tensors are no wider than f32
/// and products read them as they are.
[[nodiscard]] inline std::vector<std::string> training_recipes() { return {"f32", "tf32", "bf16", "f16"}; }

/// A workload of one rank: build() is given the case's recipe.
[[nodiscard]] std::shared_ptr<const Workload> declare(Declaration declaration);

/// What a forward leaves: the value that the gradient flows into, and those whose gradients are asked for.
struct Forward {
  ValueId y;
  std::vector<ValueId> wanted;
};
/// The backward of what `forward` appends, derived from it. It reads what the forward saved: that forward is set-up,
/// checked but not timed. The gradient that flows in is a source "dy", about one.
[[nodiscard]] Program backward_of(const std::function<Forward(Program&)>& forward);

/// A workload over flat arrays of "n" elements, read in bytes per second; `item` is what one element is ("parameters").
[[nodiscard]] std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item,
                                                           Grid grid, Program (*build)(const Case&, const Recipe&));

}  // namespace gpubench::suites

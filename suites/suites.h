// The list of all suites, the only place where they are named together, and how a suite file declares its workloads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/workload.h"

namespace gpubench {

/// Every suite in the order in which they are listed and run.
[[nodiscard]] std::span<const Suite> all_suites();

namespace suites {

[[nodiscard]] Suite gemm();         ///< gemm.cpp
[[nodiscard]] Suite conv();         ///< conv.cpp
[[nodiscard]] Suite attention();    ///< attention.cpp
[[nodiscard]] Suite norm();         ///< norm.cpp
[[nodiscard]] Suite pool();         ///< pool.cpp
[[nodiscard]] Suite optimizer();    ///< optimizer.cpp
[[nodiscard]] Suite memory();       ///< memory.cpp
[[nodiscard]] Suite link();         ///< link.cpp
[[nodiscard]] Suite launch();       ///< launch.cpp
[[nodiscard]] Suite collectives();  ///< collectives.cpp
[[nodiscard]] Suite transformer();  ///< transformer.cpp

/// A workload by its four parts, which are Workload's members of the same names.
struct Declaration {
  WorkloadInfo info;
  Grid grid;
  std::function<Program(const Case&, const Recipe&)> build;
  std::function<double(const Case&)> items;
};

/// Recipes of matrix products and whole steps: those in which tensors are no wider than f32 and products read them
/// unchanged.
[[nodiscard]] inline std::vector<std::string> training_recipes() { return {"f32", "tf32", "bf16", "f16"}; }

/// A workload of one rank: build() is given the case's recipe.
[[nodiscard]] std::shared_ptr<const Workload> declare(Declaration declaration);

/// What a forward returns: the value that the gradient flows into, and those whose gradients are wanted.
struct Forward {
  ValueId y;
  std::vector<ValueId> wanted;
};
/// The backward of what `forward` appends, derived from it. It reads what the forward saved: that forward is set-up,
/// checked but not timed. The gradient that flows in is a source "dy", about one.
[[nodiscard]] Program backward_of(const std::function<Forward(Program&)>& forward);

/// A workload over flat arrays of "n" elements, in bytes per second; `item` names an element ("parameters").
[[nodiscard]] std::shared_ptr<const Workload> declare_flat(std::string name, std::string description, std::string item,
                                                           Grid grid, Program (*build)(const Case&, const Recipe&));

}  // namespace suites
}  // namespace gpubench

// The list of all suites: the only place where they are named together.
#pragma once

#include <span>

#include "harness/core/workload.h"

namespace gpubench {

/// Every suite in the order in which they are listed and run.
[[nodiscard]] std::span<const Suite> all_suites();

namespace suites {

[[nodiscard]] Suite gemm();         ///< gemm.cpp
[[nodiscard]] Suite conv();         ///< conv.cpp
[[nodiscard]] Suite attention();    ///< attention.cpp
[[nodiscard]] Suite norm();         ///< norm.cpp
[[nodiscard]] Suite optimizer();    ///< optimizer.cpp
[[nodiscard]] Suite memory();       ///< memory.cpp
[[nodiscard]] Suite link();         ///< link.cpp
[[nodiscard]] Suite launch();       ///< launch.cpp
[[nodiscard]] Suite collectives();  ///< collectives.cpp
[[nodiscard]] Suite transformer();  ///< transformer.cpp

}  // namespace suites
}  // namespace gpubench

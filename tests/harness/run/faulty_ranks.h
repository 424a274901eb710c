// CPU ranks with faults: a communicator that damages results of collectives, and backends that fail on one rank.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/core/communicator.h"

namespace gpubench::testing {

/// Called on each rank's thread after a collective with its tensors (all inputs, then all outputs). All ranks have
/// finished, and no rank continues before all calls have returned.
using Damage = std::function<void(int rank, std::span<const Tensor> tensors, std::size_t inputs)>;

/// Calls `damage` after each collective of `inner`.
[[nodiscard]] std::unique_ptr<Communicator> damaged(std::unique_ptr<Communicator> inner, int ranks, Damage damage);

/// Calls `before` before each op of `inner`; its exceptions fail the op.
[[nodiscard]] std::unique_ptr<Backend> interrupted(std::unique_ptr<Backend> inner,
                                                   std::function<void(const std::string& label)> before);

}  // namespace gpubench::testing

// CPU ranks with faults: a communicator that damages what a collective left, and backends that fail on one rank.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/core/communicator.h"

namespace gpubench::testing {

/// What is done to one rank, on its own thread, after (`damage`) its part of a collective, with the collective's
/// tensors (all inputs, then all outputs). All ranks are done then, and none goes on before all have been here.
using Damage = std::function<void(int rank, std::span<const Tensor> tensors, std::size_t inputs)>;

/// `inner`, and `damage` behind each collective.
[[nodiscard]] std::unique_ptr<Communicator> damaged(std::unique_ptr<Communicator> inner, int ranks, Damage damage);

/// `inner`, and `before` ahead of each op that it runs; what it throws is the op's failure.
[[nodiscard]] std::unique_ptr<Backend> interrupted(std::unique_ptr<Backend> inner,
                                                   std::function<void(const std::string& label)> before);

}  // namespace gpubench::testing

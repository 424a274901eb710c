// The side of a process that lends its device to process 0: it does what it is asked, one request at a time
// (protocol.h), and runs the two lanes of its rank. A thread beside it says every half second how far it is, also while
// an op hangs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "harness/core/backend.h"
#include "harness/core/processes.h"
#include "harness/remote/requests.h"

namespace gpubench {

struct ServerSetup {
  Hello hello;  ///< its clock is read anew
  std::function<std::unique_ptr<Backend>()> open_backend;
  std::function<std::unique_ptr<RankCollectives>(int ranks)> open_collectives;
  /// What judges the candidates among which a plan of this op chooses; `tensors`: of its inputs, then of its outputs.
  /// No function: nothing does.
  std::function<std::unique_ptr<ResultJudge>(const OpCall& call, std::span<const TensorSpec> tensors)> judge = {};
  std::function<void()> greeted = [] {};  ///< process 0 has asked for the hello
};

/// Serves until it is told to end; returns the exit code that comes with it. What a request throws is its answer; an op
/// that fails within an interval is told of when that ends, since the rank's collectives go on, for which its peers
/// wait. Throws BackendError where the channel breaks.
[[nodiscard]] int serve_rank(Channel& channel, const ServerSetup& setup);

}  // namespace gpubench

// A process that lends its device to process 0: it executes one request at a time (requests.h) and runs the two lanes
// of its rank. A second thread sends its progress every half second, also while an op hangs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "harness/core/backend.h"
#include "harness/core/processes.h"
#include "harness/remote/requests.h"

namespace gpubench {

struct ServerSetup {
  Hello hello;  ///< its clock_s is not used: the clock is read on each request
  std::function<std::unique_ptr<Backend>()> open_backend;
  std::function<std::unique_ptr<RankCollectives>(int ranks)> open_collectives;
  /// The judge of the candidates of a plan; `tensors`: specs of the inputs, then of the outputs. Empty: no judge.
  std::function<std::unique_ptr<ResultJudge>(const OpCall& call, std::span<const TensorSpec> tensors)> judge = {};
  std::function<void()> greeted = [] {};  ///< called when process 0 asks for the hello
};

/// Serves until the request `end`; returns its exit code. An exception of a request becomes its answer. An op that
/// fails within an interval is reported at the end of it: its peers wait for the rank's collectives, so these go on.
/// Throws BackendError if the channel breaks.
[[nodiscard]] int serve_rank(Channel& channel, const ServerSetup& setup);

}  // namespace gpubench

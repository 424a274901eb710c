// Processes that are threads of this one, with channels in its memory and collectives on it: what harness/remote is
// tested with, without MPI.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "harness/core/processes.h"
#include "harness/remote/rank_server.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/remote_ranks.h"

namespace gpubench::testing {

/// What one of the processes is like.
using MakeSetup = std::function<ServerSetup(int rank)>;

class MemoryProcesses {
 public:
  /// `make`: of each; where it has no collectives, they are in memory. Null: CPU backends of one thread, all of one
  /// build.
  explicit MemoryProcesses(int ranks, double limit_s = 15.0, const MakeSetup& make = {});
  MemoryProcesses(const MemoryProcesses&) = delete;
  MemoryProcesses& operator=(const MemoryProcesses&) = delete;
  /// Ends them. After a loss those that still serve are left behind.
  ~MemoryProcesses();

  /// Greets them all when it is first called.
  [[nodiscard]] RemoteRanks& ranks();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  double limit_s_;
  std::vector<ChannelPair> channels_;
  std::vector<std::thread> threads_;
  std::unique_ptr<RemoteRanks> ranks_;
};

/// The setup of such a process with a CPU backend. `change`: what its device says otherwise.
[[nodiscard]] ServerSetup usual_setup(int rank, const std::function<void(DeviceInfo&)>& change = {});

}  // namespace gpubench::testing

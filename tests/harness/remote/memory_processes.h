// Ranks as threads of this process, with channels and collectives in memory, to test harness/remote without MPI.
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

using MakeSetup = std::function<ServerSetup(int rank)>;

class MemoryProcesses {
 public:
  /// `make`: setup of each rank; collectives default to memory. Empty: usual_setup().
  explicit MemoryProcesses(int ranks, double limit_s = 15.0, const MakeSetup& make = {});
  MemoryProcesses(const MemoryProcesses&) = delete;
  MemoryProcesses& operator=(const MemoryProcesses&) = delete;
  /// Ends the threads; after a loss, detaches them.
  ~MemoryProcesses();

  /// Greets all ranks on the first call.
  [[nodiscard]] RemoteRanks& ranks();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  double limit_s_;
  std::vector<ChannelPair> channels_;
  std::vector<std::thread> threads_;
  std::unique_ptr<RemoteRanks> ranks_;
};

/// A CPU backend of one thread, the same build for all ranks. `change` edits its DeviceInfo.
[[nodiscard]] ServerSetup usual_setup(int rank, const std::function<void(DeviceInfo&)>& change = {});

}  // namespace gpubench::testing

#include "tests/reference/cuda/fake_nccl.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "reference/cuda/cuda_communicator.h"
#include "tests/reference/cuda/emulated_backend.h"

namespace gpubench::testing {
namespace {

/// Messages between processes. A rank's n-th broadcast with the same members is the n-th of each of them.
class Exchange {
 public:
  void broadcast(int rank, const RankGroup& members, std::span<std::byte> bytes) {
    const std::vector<int> who(members.members().begin(), members.members().end());
    std::unique_lock lock(mutex_);
    const std::pair meeting{who, came_[{who, rank}]++};
    if (members[0] == rank) {
      told_[meeting].assign(bytes.begin(), bytes.end());
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return told_.contains(meeting); });
    std::ranges::copy(told_[meeting], bytes.begin());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::vector<int>, int>, int> came_;
  std::map<std::pair<std::vector<int>, int>, std::vector<std::byte>> told_;
};

}  // namespace

std::unique_ptr<MemoryProcesses> nccl_processes(int ranks, NcclTrouble trouble) {
  const cuda::NcclCalls& calls = fake_nccl(trouble);
  const auto exchange = std::make_shared<Exchange>();
  constexpr double limit_s = 15.0;
  return std::make_unique<MemoryProcesses>(ranks, limit_s, [&calls, exchange](int rank) {
    ServerSetup setup = usual_setup(rank);
    setup.open_backend = [] { return open_emulated_backend(); };
    setup.open_collectives = [&calls, exchange, rank](int of) {
      return cuda::open_nccl_collectives(
          calls, {.ranks = of,
                  .held = RankGroup({rank}),
                  .devices = {rank},
                  .broadcast = [exchange, rank](const RankGroup& members, std::span<std::byte> bytes) {
                    exchange->broadcast(rank, members, bytes);
                  }});
    };
    return setup;
  });
}

RankSet open_nccl_in_processes(int ranks) {
  static std::map<int, std::unique_ptr<MemoryProcesses>> all;
  std::unique_ptr<MemoryProcesses>& processes = all[ranks];
  if (processes == nullptr) processes = nccl_processes(ranks);
  return processes->ranks().open(ranks);
}

}  // namespace gpubench::testing

#include "reference/cpu/cpu_ranks.h"

#include <fmt/format.h>
#include <sched.h>

#include <vector>

#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/host.h"

namespace gpubench {
namespace {

constexpr int most_ranks = 64;

std::vector<int> usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

// OpenMP's threads of a rank are started from its thread and stay where that was bound to.
void bind_to(const std::vector<int>& processors) {
  cpu_set_t own;
  CPU_ZERO(&own);
  for (const int processor : processors) CPU_SET(processor, &own);
  (void)sched_setaffinity(0, sizeof own, &own);  // where refused, ranks run all the same, less apart
}

}  // namespace

RankSet open_cpu_ranks(int ranks) {
  if (ranks < 1 || ranks > most_ranks)
    throw BackendError(fmt::format("cpu: {} ranks; expected 1 to {}", ranks, most_ranks));
  const int usable = cpu::usable_threads();
  const bool oversubscribed = ranks > usable;
  const int threads = oversubscribed ? 1 : usable / ranks;
  RankSet set;
  for (int rank = 0; rank < ranks; ++rank) set.backends.push_back(open_cpu_backend(threads));
  set.communicator = open_cpu_communicator(threads, oversubscribed);
  set.device = set.backends.front()->device();
  set.device.units = oversubscribed ? usable : ranks * threads;
  if (oversubscribed) set.flags.emplace_back("oversubscribed");
  const std::vector<int> processors = usable_processors();
  if (!oversubscribed && static_cast<int>(processors.size()) >= ranks * threads) {
    set.enter = [processors, threads](int rank) {
      const auto first = processors.begin() + static_cast<std::ptrdiff_t>(rank) * threads;
      bind_to({first, first + threads});
    };
  }
  return set;
}

}  // namespace gpubench

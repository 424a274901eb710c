#include "reference/cpu/pinned_threads.h"

#include <omp.h>

#include <vector>

namespace gpubench::cpu {
namespace {

std::vector<int> processors_of(const cpu_set_t& set) {
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) processors.push_back(processor);
  }
  return processors;
}

}  // namespace

PinnedThreads::PinnedThreads(int threads) {
  CPU_ZERO(&before_);
  if (omp_get_proc_bind() != omp_proc_bind_false || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  const std::vector<int> processors = processors_of(before_);
  if (threads < 2 || static_cast<int>(processors.size()) != threads)
    return;  // one thread on one has nowhere else to go
  threads_ = threads;
  int refused = 0;
#pragma omp parallel num_threads(threads) reduction(+ : refused)
  {
    const int thread = omp_get_thread_num();
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processors[static_cast<std::size_t>(thread)], &own);
    if (thread > 0 && sched_setaffinity(0, sizeof own, &own) != 0) ++refused;
  }
  if (refused == threads - 1) threads_ = 0;
}

PinnedThreads::~PinnedThreads() {
  if (threads_ == 0) return;
#pragma omp parallel num_threads(threads_)
  (void)sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace gpubench::cpu

#include "reference/cpu/pinned_threads.h"

#include <omp.h>

#include <atomic>
#include <vector>

namespace gpubench::cpu {
namespace {

// Which object bound a thread last: a thread that was started since has none.
std::atomic<std::uint64_t> last_mark{0};
thread_local std::uint64_t mark_of_thread = 0;

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
  mark_ = ++last_mark;
  int refused = 0;
#pragma omp parallel num_threads(threads) reduction(+ : refused)
  {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processors[static_cast<std::size_t>(omp_get_thread_num())], &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0) ++refused;
    mark_of_thread = mark_;
  }
  if (refused > 0) release();
}

void PinnedThreads::release_if_threads_changed() {
  if (threads_ == 0) return;
  int changed = 0;
#pragma omp parallel num_threads(threads_) reduction(+ : changed)
  if (mark_of_thread != mark_) ++changed;
  if (changed > 0) release();
}

void PinnedThreads::release() {
  if (threads_ == 0) return;
#pragma omp parallel num_threads(threads_)
  (void)sched_setaffinity(0, sizeof before_, &before_);
  threads_ = 0;
}

}  // namespace gpubench::cpu

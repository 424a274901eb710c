#include "harness/core/communicator.h"

namespace gpubench {
namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Progress::advance() {
  number_.fetch_add(1, std::memory_order_acq_rel);
  number_.notify_all();
}

void Progress::wait_for(std::uint64_t goal, int spins) const {
  for (int spin = 0;; ++spin) {
    const std::uint64_t seen = number_.load(std::memory_order_acquire);
    if ((seen & stopped_bit) != 0) throw RanksStopped();
    if (seen >= goal) return;
    if (spin < spins) {
      relax();
    } else {
      number_.wait(seen, std::memory_order_acquire);
    }
  }
}

void Progress::stop() {
  number_.fetch_or(stopped_bit, std::memory_order_acq_rel);
  number_.notify_all();
}

RankBarrier::RankBarrier(int ranks, int spins)
    : ranks_(ranks), spins_(spins), waits_(std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(ranks))) {}

void RankBarrier::arrive(int rank) {
  const std::uint64_t meeting = generation_.value();
  std::atomic<bool>& waits = waits_[static_cast<std::size_t>(rank)];
  waits.store(true, std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.advance();
  }
  generation_.wait_for(meeting + 1, spins_);
  waits.store(false, std::memory_order_relaxed);
}

void RankBarrier::reset() {
  arrived_.store(0);
  generation_.reset();
  for (int rank = 0; rank < ranks_; ++rank) waits_[static_cast<std::size_t>(rank)].store(false);
}

std::vector<int> RankBarrier::waiting() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (waits_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gpubench

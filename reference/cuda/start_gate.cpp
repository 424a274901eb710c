#include "reference/cuda/start_gate.h"

#include <algorithm>
#include <new>

#include "reference/cuda/kernels/timing.h"

namespace gpubench::cuda {
namespace {

static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t) &&
                  std::atomic<std::uint64_t>::is_always_lock_free,
              "a device reads the number as it lies in memory");

std::shared_ptr<std::atomic<std::uint64_t>> shared_number() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(std::uint64_t), cudaHostAllocPortable | cudaHostAllocMapped),
        "allocating a number that devices read");
  auto* number = ::new (memory) std::atomic<std::uint64_t>(0);
  return {number, [](std::atomic<std::uint64_t>* held) { (void)cudaFreeHost(held); }};
}

}  // namespace

StartGate::StartGate(int ranks)
    : ranks_(ranks), turns_(std::make_unique<Turns[]>(static_cast<std::size_t>(ranks))), opened_(shared_number()) {}

void StartGate::close(int rank, cudaStream_t stream) {
  const std::uint64_t turn = ++turns_[static_cast<std::size_t>(rank)].closed;
  launch_gate(reinterpret_cast<const std::uint64_t*>(opened_.get()), turn, limit_ns, stream);
  check_launch("the gate");
}

void StartGate::arrive(int rank) {
  Turns& own = turns_[static_cast<std::size_t>(rank)];
  own.arrived = own.closed.load();
  std::uint64_t all = own.arrived;
  for (int peer = 0; peer < ranks_; ++peer) all = std::min(all, turns_[static_cast<std::size_t>(peer)].arrived.load());
  std::uint64_t seen = opened_->load();
  while (seen < all && !opened_->compare_exchange_weak(seen, all)) {
  }
}

void StartGate::reset() {
  std::uint64_t last = 0;
  for (int rank = 0; rank < ranks_; ++rank) last = std::max(last, turns_[static_cast<std::size_t>(rank)].closed.load());
  for (int rank = 0; rank < ranks_; ++rank) {
    turns_[static_cast<std::size_t>(rank)].closed = last;
    turns_[static_cast<std::size_t>(rank)].arrived = last;
  }
  *opened_ = last;
}

}  // namespace gpubench::cuda

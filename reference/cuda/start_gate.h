// Holds the devices of all ranks back until the host has put an interval's work on their queues: else short collectives
// measure how fast the host enqueues.
//
// A gate is a kernel that spins on a number in the host's memory. It has a limit of its own, so that a rank which fails
// before it has enqueued anything stops nobody for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "reference/cuda/runtime.h"

namespace gpubench::cuda {

class StartGate {
 public:
  /// So many steps of a rank may wait behind a gate; then it has arrived. A device's queue holds some thousand, and a
  /// host that waits for room in it would never open the gate.
  static constexpr int most_waiting = 256;
  /// The host needs 5 to 30 us for a step, so most_waiting of them take less than half of this.
  static constexpr std::uint64_t limit_ns = 20'000'000;

  explicit StartGate(int ranks);

  /// What is put on the stream from now on waits until every rank has arrived as often as this one has closed its gate.
  /// Called on the rank's thread with its device current.
  void close(int rank, cudaStream_t stream);
  /// The rank has put its work behind the gate that it closed last. More calls before the next close() do nothing.
  void arrive(int rank);
  /// Opens every gate and takes all ranks to the same turn, once none of them is at work.
  void reset();

 private:
  struct Turns {
    std::atomic<std::uint64_t> closed{0};
    std::atomic<std::uint64_t> arrived{0};
  };
  int ranks_;
  std::unique_ptr<Turns[]> turns_;
  std::shared_ptr<std::atomic<std::uint64_t>> opened_;  // pinned: devices read it
};

}  // namespace gpubench::cuda

// Processes that a launcher (mpirun, srun) started together: messages between process 0 and each other one, and
// concurrent collectives. reference/mpi implements it; harness/remote builds ranks on it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/mesh.h"
#include "harness/core/program.h"

namespace gpubench {

/// Messages between two processes, whole and in order. One thread receives; any thread may send.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Returns when `message` may be changed. Throws BackendError if the other side does not accept it.
  virtual void send(std::span<const std::byte> message) = 0;
  /// Waits for the next message up to `seconds`; none on timeout. Throws BackendError.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> receive(double seconds) = 0;
};

/// The collectives of the first processes, seen by one of them: rank r is process r.
class RankCollectives {
 public:
  virtual ~RankCollectives() = default;

  /// The kernel, "openmpi:4.1.4:allreduce". Throws Unsupported if the op, the type or the layout is not available.
  /// Local: no messages.
  [[nodiscard]] virtual std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) = 0;
  /// `tensors`: of all members, inputs, then outputs, as in reference/ops/collective.h; those of other processes have
  /// no address. Collective over the group. Throws BackendError.
  [[nodiscard]] virtual Launch bind(const OpCall& call, std::span<const Tensor> tensors) = 0;
  /// This process's part, complete on return. Members of a group that share launches run them in the same order, one at
  /// a time in each process. `overlaps_compute`: ops run concurrently, so waiting must not occupy processors. Throws
  /// DeviceLost if the library reports an error.
  virtual void run(const Launch& launch, bool overlaps_compute) = 0;
  /// Barrier of these processes. Throws as `run`.
  virtual void align() = 0;
  /// Queues for the lanes of this process's rank, with collectives; null if host threads run them. Called on the thread
  /// that uses it.
  [[nodiscard]] virtual RankQueues* queues() { return nullptr; }
};

class Processes {
 public:
  virtual ~Processes() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual std::string library() const = 0;
  /// The processes of this host that may run on the same processors, including this one: its place among them, and
  /// their number.
  struct Share {
    int place = 0;
    int processes = 1;
  };
  [[nodiscard]] virtual Share share() const = 0;
  /// The place of this process among those of its host, in rank order.
  [[nodiscard]] virtual int place_on_host() const = 0;
  [[nodiscard]] virtual std::string host(int rank) const = 0;

  /// To process `rank` from process 0; to process 0 from any other.
  [[nodiscard]] virtual Channel& channel(int rank) = 0;
  /// Collective over the first `ranks` processes. Throws BackendError.
  [[nodiscard]] virtual std::unique_ptr<RankCollectives> collectives(int ranks) = 0;
  /// Sends the first member's `bytes` to all members; collective. Throws BackendError.
  virtual void broadcast(const RankGroup& members, std::span<std::byte> bytes) = 0;

  /// Orderly shutdown; all processes call it last.
  virtual void finish() = 0;
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace gpubench

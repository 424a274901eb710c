// Several processes that a launcher (mpirun, srun) started together, as what joins them offers them: messages between
// process 0 and each other one, and collectives that all run at the same time. reference/mpi implements it;
// harness/remote makes ranks of it.
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

/// Messages between two processes, which arrive whole and in their order. One thread receives; any thread may send.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Returns once `message` may be changed. Throws BackendError where the other side does not take it.
  virtual void send(std::span<const std::byte> message) = 0;
  /// The next message, waited for up to `seconds`; none: there was none by then. Throws BackendError.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> receive(double seconds) = 0;
};

/// The collectives of the first so many processes, seen by one of them: rank r is process r.
class RankCollectives {
 public:
  virtual ~RankCollectives() = default;

  /// Who computes, "openmpi:4.1.4:allreduce". Throws Unsupported where the op, the type or the layout is not available.
  /// Asks no other process.
  [[nodiscard]] virtual std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) = 0;
  /// `tensors`: of all members, inputs, then outputs, as in reference/ops/collective.h; those of other processes have
  /// no address. All members of the group call it at the same time. Throws BackendError.
  [[nodiscard]] virtual Launch bind(const OpCall& call, std::span<const Tensor> tensors) = 0;
  /// This process's part, complete on return. Members of a group that share launches run them in the same order; at
  /// most one runs at a time in each process. `overlaps_compute`: ops are run at the same time, by processors that must
  /// not be kept busy with waiting for a peer. Throws DeviceLost where the library reports an error.
  virtual void run(const Launch& launch, bool overlaps_compute) = 0;
  /// Returns once all of these processes are here. Throws as `run`.
  virtual void align() = 0;
  /// What the lanes of this process's rank are put on, collectives among them; null: the host's own threads run them.
  /// Called on the thread that uses it.
  [[nodiscard]] virtual RankQueues* queues() { return nullptr; }
};

/// The processes of one run, seen by one of them.
class Processes {
 public:
  virtual ~Processes() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// "Open MPI 4.1.4".
  [[nodiscard]] virtual std::string library() const = 0;
  /// How many processes share this one's processors, itself among them, and which of them it is: those of the same host
  /// that may run on the same ones.
  struct Share {
    int place = 0;
    int processes = 1;
  };
  [[nodiscard]] virtual Share share() const = 0;
  /// Which of the processes of its host this one is, in the order of their ranks.
  [[nodiscard]] virtual int place_on_host() const = 0;
  /// The host of process `rank`.
  [[nodiscard]] virtual std::string host(int rank) const = 0;

  /// To process `rank`, of process 0; to process 0, of any other.
  [[nodiscard]] virtual Channel& channel(int rank) = 0;
  /// The first `ranks` processes call it at the same time. Throws BackendError.
  [[nodiscard]] virtual std::unique_ptr<RankCollectives> collectives(int ranks) = 0;
  /// What the first member has in `bytes`, to those of all; all members call it at the same time. Throws BackendError.
  virtual void broadcast(const RankGroup& members, std::span<std::byte> bytes) = 0;

  /// Leaves them in good order; all call it, and nothing else afterwards.
  virtual void finish() = 0;
  /// Ends all of them with this exit code, whatever they do.
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace gpubench

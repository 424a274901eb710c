// Messages by MPI. A waiting process may share its core with a timed rank, so it polls often at first and less often
// the longer it waits.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "reference/mpi/mpi_processes.h"

namespace gpubench::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int message_tag = 1;

/// Pauses between polls.
class Patience {
 public:
  [[nodiscard]] double waited_s() const { return Seconds(Clock::now() - begun_).count(); }
  /// A sixteenth of the time waited so far.
  void pause() const {
    constexpr double no_sleep_s = 20e-6, longest_s = 2e-3, share = 1.0 / 16.0;
    const double waited = waited_s();
    if (waited < no_sleep_s) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(Seconds(std::min(share * waited, longest_s)));
    }
  }

 private:
  Clock::time_point begun_ = Clock::now();
};

class MpiChannel final : public Channel {
 public:
  MpiChannel(MPI_Comm communicator, int peer, double limit_s)
      : communicator_(communicator), peer_(peer), limit_s_(limit_s) {}

  void send(std::span<const std::byte> message) override {
    if (message.size() > static_cast<std::size_t>(INT_MAX))
      throw BackendError(fmt::format("a message of {} bytes; MPI sends at most {}", message.size(), INT_MAX));
    // A copy: if the peer never receives it, it is leaked, as MPI may still read it.
    auto copy = std::make_unique<std::vector<std::byte>>(message.begin(), message.end());
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Isend(copy->data(), static_cast<int>(copy->size()), MPI_BYTE, peer_, message_tag, communicator_, &request),
        "sending a message");
    const Patience patience;
    int done = 0;
    while (true) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "sending a message");
      if (done != 0) return;
      if (limit_s_ > 0.0 && patience.waited_s() > limit_s_) {
        (void)copy.release();
        throw BackendError(fmt::format("it has not received a message for {:g} s", limit_s_));
      }
      patience.pause();
    }
  }

  [[nodiscard]] std::optional<std::vector<std::byte>> receive(double seconds) override {
    const Patience patience;
    MPI_Message matched = MPI_MESSAGE_NULL;
    MPI_Status status{};
    int found = 0;
    while (true) {
      check(MPI_Improbe(peer_, message_tag, communicator_, &found, &matched, &status), "probing for a message");
      if (found != 0) break;
      if (patience.waited_s() > seconds) return std::nullopt;
      patience.pause();
    }
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "querying the length of a message");
    std::vector<std::byte> message(static_cast<std::size_t>(std::max(bytes, 0)));
    check(MPI_Mrecv(message.data(), bytes, MPI_BYTE, &matched, MPI_STATUS_IGNORE), "receiving a message");
    return message;
  }

 private:
  MPI_Comm communicator_;
  int peer_;
  double limit_s_;
};

}  // namespace

std::unique_ptr<Channel> open_channel(MPI_Comm communicator, int peer, double send_limit_s) {
  return std::make_unique<MpiChannel>(communicator, peer, send_limit_s);
}

}  // namespace gpubench::mpi

// Process 0's connection to another process (requests.h): one request at a time. The wait for its answer ends when
// StallWatch considers the process lost.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/processes.h"
#include "harness/remote/message.h"
#include "harness/remote/requests.h"
#include "harness/remote/stall_watch.h"

namespace gpubench {

/// Interval of StallWatch::look() during a wait.
constexpr double look_every_s = 0.1;

class RemoteProcess {
 public:
  /// `name`: "process 1 (pid 17 on b)"; channel and watch must outlive this.
  RemoteProcess(Channel& channel, StallWatch& watch, int rank, std::string name)
      : channel_(channel), watch_(watch), rank_(rank), name_(std::move(name)) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] static MessageWriter request(Request kind) {
    MessageWriter message;
    message.put(kind);
    return message;
  }
  /// The content of the answer, without its Answer. Calls `on_beat` with each beat. Throws the failure that the other
  /// process reports: BackendError with its name, Unsupported and ProgramError with their own texts, DeviceLost.
  /// Throws also if it is lost (StallWatch::look).
  [[nodiscard]] std::vector<std::byte> ask(const MessageWriter& request,
                                           const std::function<void(const Heartbeat&)>& on_beat = {});
  /// The two halves of ask(). Between them, other requests to this process block.
  void begin(const MessageWriter& request);
  [[nodiscard]] std::vector<std::byte> finish(const std::function<void(const Heartbeat&)>& on_beat = {});
  /// A part of finish(): waits up to `seconds` for one message; nullopt: not answered yet. A caller that asked several
  /// processes must hear them by turns, or those not heard count as silent.
  [[nodiscard]] std::optional<std::vector<std::byte>> hear(double seconds,
                                                           const std::function<void(const Heartbeat&)>& on_beat = {});

  /// Sent with the next request. Thread-safe.
  enum class Held { buffer, plan, launch };
  void release(Held what, std::uint64_t number);
  /// Number of launches released so far; when it grows, sent programs that hold launches may be dropped.
  [[nodiscard]] std::uint64_t releases() const;

  /// Sends a request that has no answer.
  void tell(const MessageWriter& request);

 private:
  void send_releases();
  [[nodiscard]] std::optional<std::vector<std::byte>> next(double seconds,
                                                           const std::function<void(const Heartbeat&)>& on_beat);
  [[noreturn]] void lose(const std::string& why);

  Channel& channel_;
  StallWatch& watch_;
  int rank_;
  std::string name_;
  /// Exclusive use from a request to its answer. Not a mutex: several processes are asked together, in any order.
  class Turn {
   public:
    void take();
    void give_back();

   private:
    std::mutex mutex_;
    std::condition_variable free_;
    bool taken_ = false;
  };

  Turn turn_;
  mutable std::mutex releasing_;
  std::vector<std::uint64_t> released_[3];
  std::uint64_t releases_ = 0;
};

/// The two ends of a channel between two threads, by which process 0 asks its own rank.
struct ChannelPair {
  std::unique_ptr<Channel> first, second;
};
[[nodiscard]] ChannelPair local_channel();

}  // namespace gpubench

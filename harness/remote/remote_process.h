// Another process as process 0 asks it (protocol.h): one request at a time, and an answer that is waited for as long as
// the process comes any further.
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

/// Who waits for a process looks so often whether it is lost.
constexpr double look_every_s = 0.1;

class RemoteProcess {
 public:
  /// `name`: "process 1 (pid 17 on b)"; channel and watch must outlive it.
  RemoteProcess(Channel& channel, StallWatch& watch, int rank, std::string name)
      : channel_(channel), watch_(watch), rank_(rank), name_(std::move(name)) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// A request's message, which takes its content.
  [[nodiscard]] static MessageWriter request(Request kind) {
    MessageWriter message;
    message.put(kind);
    return message;
  }
  /// What was sent back, behind its Answer. Calls `on_beat` with each beat. Throws what the other process told of:
  /// BackendError with its name, Unsupported and ProgramError with their own texts, DeviceLost; and where it is lost
  /// (StallWatch::look).
  [[nodiscard]] std::vector<std::byte> ask(const MessageWriter& request,
                                           const std::function<void(const Heartbeat&)>& on_beat = {});
  /// The two halves of it. Between the two nothing else may be asked of this one.
  void begin(const MessageWriter& request);
  [[nodiscard]] std::vector<std::byte> finish(const std::function<void(const Heartbeat&)>& on_beat = {});
  /// A part of finish(): hears one message, for which it waits so long; nothing where there is no answer yet. Who asked
  /// several processes hears all of them by turns: one that nobody listens to would count as silent.
  [[nodiscard]] std::optional<std::vector<std::byte>> hear(double seconds,
                                                           const std::function<void(const Heartbeat&)>& on_beat = {});

  /// Told with the next request. Any thread may call it.
  enum class Held { buffer, plan, launch };
  void release(Held what, std::uint64_t number);
  /// How often launches have been released: what was sent that holds some may be dropped then.
  [[nodiscard]] std::uint64_t releases() const;

  /// A request that has no answer.
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
  /// From a request to its answer nobody else may ask. No lock: several processes are asked together, in any order.
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

/// The two ends of a channel between two threads: process 0 asks its own rank by it, as it asks those of other
/// processes.
struct ChannelPair {
  std::unique_ptr<Channel> first, second;
};
[[nodiscard]] ChannelPair local_channel();

}  // namespace gpubench

#include "harness/remote/remote_process.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

template <class Work>
class AtEnd {
 public:
  explicit AtEnd(Work work) : work_(std::move(work)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { work_(); }

 private:
  Work work_;
};

}  // namespace

void RemoteProcess::release(Held what, std::uint64_t number) {
  const std::lock_guard lock(releasing_);
  released_[static_cast<std::size_t>(what)].push_back(number);
  if (what == Held::launch) ++releases_;
}

std::uint64_t RemoteProcess::releases() const {
  const std::lock_guard lock(releasing_);
  return releases_;
}

void RemoteProcess::send_releases() {
  MessageWriter message = request(Request::release);
  {
    const std::lock_guard lock(releasing_);
    bool any = false;
    for (std::vector<std::uint64_t>& numbers : released_) {
      any = any || !numbers.empty();
      message.put_list(numbers);
      numbers.clear();
    }
    if (!any) return;
  }
  channel_.send(message.bytes());
}

void RemoteProcess::Turn::take() {
  std::unique_lock lock(mutex_);
  free_.wait(lock, [this] { return !taken_; });
  taken_ = true;
}

void RemoteProcess::Turn::give_back() {
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
  }
  free_.notify_one();
}

void RemoteProcess::tell(const MessageWriter& request) {
  turn_.take();
  const AtEnd after([this] { turn_.give_back(); });
  send_releases();
  channel_.send(request.bytes());
}

void RemoteProcess::lose(const std::string& why) {
  watch_.lose(fmt::format("{}: {}", name_, why));
  throw DeviceLost(watch_.lost());
}

void RemoteProcess::begin(const MessageWriter& request) {
  turn_.take();
  try {
    if (const std::string lost = watch_.lost(); !lost.empty()) throw DeviceLost(lost);
    send_releases();
    watch_.begin(rank_);
    channel_.send(request.bytes());
  } catch (const DeviceLost&) {
    turn_.give_back();
    throw;
  } catch (const BackendError& e) {
    turn_.give_back();
    lose(e.what());
  }
}

std::optional<std::vector<std::byte>> RemoteProcess::hear(double seconds,
                                                          const std::function<void(const Heartbeat&)>& on_beat) {
  bool ends = true;  // also when next() throws
  const AtEnd after([&] {
    if (ends) turn_.give_back();
  });
  std::optional<std::vector<std::byte>> answer = next(seconds, on_beat);
  ends = answer.has_value();
  return answer;
}

std::optional<std::vector<std::byte>> RemoteProcess::next(double seconds,
                                                          const std::function<void(const Heartbeat&)>& on_beat) {
  std::optional<std::vector<std::byte>> message;
  try {
    message = channel_.receive(seconds);
  } catch (const BackendError& e) {
    lose(e.what());
  }
  if (!message) {
    watch_.look(rank_);
    return std::nullopt;
  }
  Failure failure = Failure::error;
  std::string text;
  try {
    MessageReader reader(*message);
    const auto kind = reader.get<Answer>();
    if (kind == Answer::done) {
      watch_.end(rank_);
      message->erase(message->begin());
      return message;
    }
    if (kind == Answer::beat) {
      Heartbeat beat;
      beat.steps = reader.get<std::uint64_t>();
      beat.waits = reader.get_bool();
      beat.label = reader.text();
      watch_.heard(rank_, beat);
      if (on_beat) on_beat(beat);
      watch_.look(rank_);
      return std::nullopt;
    }
    failure = reader.get<Failure>();
    text = reader.text();
  } catch (const MessageError& e) {
    lose(e.what());
  }
  watch_.end(rank_);
  switch (failure) {
    case Failure::unsupported: throw Unsupported(text);
    case Failure::program: throw ProgramError(text);
    case Failure::lost: lose(text);
    case Failure::memory:
    case Failure::error: break;
  }
  throw BackendError(fmt::format("{}: {}", name_, text));
}

std::vector<std::byte> RemoteProcess::finish(const std::function<void(const Heartbeat&)>& on_beat) {
  while (true) {
    if (std::optional<std::vector<std::byte>> answer = hear(look_every_s, on_beat)) return *std::move(answer);
  }
}

std::vector<std::byte> RemoteProcess::ask(const MessageWriter& request,
                                          const std::function<void(const Heartbeat&)>& on_beat) {
  begin(request);
  return finish(on_beat);
}

namespace {

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<std::byte>> messages;
};

class LocalChannel final : public Channel {
 public:
  LocalChannel(std::shared_ptr<Queue> out, std::shared_ptr<Queue> in) : out_(std::move(out)), in_(std::move(in)) {}
  void send(std::span<const std::byte> message) override {
    {
      const std::lock_guard lock(out_->mutex);
      out_->messages.emplace_back(message.begin(), message.end());
    }
    out_->changed.notify_all();
  }
  [[nodiscard]] std::optional<std::vector<std::byte>> receive(double seconds) override {
    std::unique_lock lock(in_->mutex);
    if (!in_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !in_->messages.empty(); }))
      return std::nullopt;
    std::vector<std::byte> message = std::move(in_->messages.front());
    in_->messages.pop_front();
    return message;
  }

 private:
  std::shared_ptr<Queue> out_, in_;
};

}  // namespace

ChannelPair local_channel() {
  const auto there = std::make_shared<Queue>(), back = std::make_shared<Queue>();
  return {std::make_unique<LocalChannel>(there, back), std::make_unique<LocalChannel>(back, there)};
}

}  // namespace gpubench

#include "harness/remote/local_channel.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace gpubench {
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

#include "harness/remote/stall_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "harness/core/communicator.h"
#include "harness/core/error.h"

namespace gpubench {

StallWatch::StallWatch(std::vector<std::string> names, double limit_s) : limit_s_(limit_s) {
  for (std::string& name : names) ranks_.push_back({std::move(name)});
}

void StallWatch::begin(int rank) {
  const std::lock_guard lock(mutex_);
  Rank& own = ranks_.at(static_cast<std::size_t>(rank));
  own.busy = true;
  own.last.waits = false;
  own.moved = own.heard = Clock::now();
}

void StallWatch::heard(int rank, const Heartbeat& beat) {
  const std::lock_guard lock(mutex_);
  Rank& own = ranks_.at(static_cast<std::size_t>(rank));
  own.heard = Clock::now();
  if (beat.steps != own.last.steps) own.moved = own.heard;
  own.last = beat;
}

void StallWatch::end(int rank) {
  const std::lock_guard lock(mutex_);
  ranks_.at(static_cast<std::size_t>(rank)).busy = false;
}

bool StallWatch::older(Clock::time_point since, Clock::time_point now) const {
  return limit_s_ > 0.0 && std::chrono::duration<double>(now - since).count() > limit_s_;
}

std::string StallWatch::place_of(const Rank& rank) {
  return rank.last.label.empty() ? "at its start" : fmt::format("last in '{}'", rank.last.label);
}

std::vector<int> StallWatch::culprits(Clock::time_point now) const {
  std::vector<int> at_work, all;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (!one.busy) continue;
    if (!older(one.moved, now)) return {};
    all.push_back(rank);
    if (!one.last.waits) at_work.push_back(rank);
  }
  return at_work.empty() ? all : at_work;  // if all wait, the culprit is unknown
}

void StallWatch::look(int rank, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) throw RanksStopped();
  for (const Rank& one : ranks_) {
    if (!one.busy || !older(one.heard, now)) continue;
    lost_ = fmt::format("{} has sent nothing for {:g} s, {}: it has exited, is stopped, or its host is unreachable",
                        one.name, limit_s_, place_of(one));
    throw DeviceLost(lost_);
  }
  const Rank& own = ranks_.at(static_cast<std::size_t>(rank));
  const std::vector<int> to_blame = culprits(now);
  if (to_blame.empty() || to_blame.front() != rank) return;
  lost_ = fmt::format("{} has made no progress for {:g} s, {}", own.name, limit_s_, place_of(own));
  if (to_blame.size() > 1)
    lost_ += fmt::format("; nor {} rank{} {}", to_blame.size() > 2 ? "have" : "has", to_blame.size() > 2 ? "s" : "",
                         fmt::join(to_blame.begin() + 1, to_blame.end(), ", "));
  std::vector<int> waits;
  for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
    const Rank& one = ranks_[static_cast<std::size_t>(other)];
    if (one.busy && std::ranges::find(to_blame, other) == to_blame.end()) waits.push_back(other);
  }
  if (!waits.empty())
    lost_ += fmt::format("; rank{} {} {} waiting", waits.size() == 1 ? "" : "s", fmt::join(waits, ", "),
                         waits.size() == 1 ? "was" : "were");
  throw DeviceLost(lost_);
}

std::vector<int> StallWatch::waiting() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (one.busy && one.last.waits) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<std::string> StallWatch::at_work() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Rank& one : ranks_) {
    if (one.busy) names.push_back(one.name);
  }
  return names;
}

std::string StallWatch::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void StallWatch::lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = why;
}

Alarm::Alarm(double after_s, std::function<void()> ring) {
  if (after_s <= 0.0) return;
  thread_ = std::jthread([after_s, ring = std::move(ring)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    (void)stopped.wait_for(lock, stop, std::chrono::duration<double>(after_s), [] { return false; });
    if (!stop.stop_requested()) ring();
  });
}

}  // namespace gpubench

// What NCCL does of several ranks together: on a thread of each, and no longer than it may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace gpubench::cuda {

/// Work of each of these ranks on a thread of its own: what NCCL does together with the other ranks. The threads share
/// what they write, so that one that hangs may be left behind.
class EachRank {
 public:
  /// How long a call may take to return by itself once another has failed. Calls take some 10 us, unless they hang.
  static constexpr auto grace = std::chrono::milliseconds(500);

  EachRank(std::span<const int> ranks, const std::function<void(int rank)>& work)
      : shared_(std::make_shared<Shared>()) {
    shared_->failures.resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::thread([shared = shared_, work, i, rank = ranks[i]] {
        std::exception_ptr failure;
        try {
          work(rank);
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(shared->mutex);
        shared->failures[i] = failure;
        ++shared->through;
        shared->changed.notify_all();
      }).detach();
    }
  }

  /// Whether all are through, in one way or another, after `seconds`, or soon after one of them has failed.
  [[nodiscard]] bool ended_within(double seconds) {
    std::unique_lock lock(shared_->mutex);
    const auto all = [this] { return shared_->through == shared_->failures.size(); };
    (void)shared_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return all() || failed(); });
    return shared_->changed.wait_for(lock, failed() ? grace : std::chrono::milliseconds(0), all);
  }

  /// Throws what the first rank that failed has thrown.
  void rethrow() {
    const std::lock_guard lock(shared_->mutex);
    for (const std::exception_ptr& failure : shared_->failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::exception_ptr> failures;
    std::size_t through = 0;
  };
  [[nodiscard]] bool failed() const {
    return std::any_of(shared_->failures.begin(), shared_->failures.end(),
                       [](const auto& failure) { return failure != nullptr; });
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace gpubench::cuda

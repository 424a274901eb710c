#include "harness/run/rank_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.h"

namespace gpubench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto look_every = std::chrono::milliseconds(20);

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace

// Shared with the threads, so that a hanging thread cannot access freed memory.
struct RankThreads::Shared {
  struct PerThread {
    std::function<void()> work;  // empty: idle
    std::exception_ptr failure;
    std::atomic<const std::string*> at{nullptr};
    std::atomic<State> state{State::idle};
    std::atomic<std::uint64_t> steps{0};
    std::thread thread;
  };

  std::mutex mutex;
  std::condition_variable to_threads;
  std::condition_variable to_caller;
  int ranks = 0;
  std::vector<std::unique_ptr<PerThread>> threads;
  int busy = 0;
  bool ending = false;
  std::optional<int> first_failure;
  std::string lost;  // why no more work can run; empty if it can
  double stall_limit_s = 0.0;
  Hooks hooks;

  [[nodiscard]] PerThread& of(int thread) { return *threads[static_cast<std::size_t>(thread)]; }

  [[nodiscard]] std::string place_of(int thread) {
    const std::string* what = of(thread).at.load();
    return what == nullptr ? std::string("its start") : fmt::format("'{}'", *what);
  }

  [[nodiscard]] std::uint64_t steps() const {
    std::uint64_t sum = 0;
    for (const auto& thread : threads) sum += thread->steps.load(std::memory_order_relaxed);
    return sum;
  }

  void serve(int thread) {
    this_thread = thread;
    std::exception_ptr entered;
    try {
      hooks.enter(thread % ranks);
    } catch (...) {
      entered = std::current_exception();  // thrown by the first work
    }
    std::unique_lock lock(mutex);
    while (true) {
      to_threads.wait(lock, [&] { return ending || of(thread).work; });
      if (!of(thread).work) return;
      const std::function<void()> work = std::exchange(of(thread).work, nullptr);
      lock.unlock();
      std::exception_ptr failure = entered;
      try {
        if (!failure) work();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      of(thread).failure = failure;
      if (failure && !first_failure && !is_stopped(failure)) first_failure = thread;
      if (failure) hooks.stop();  // after first_failure is set
      of(thread).state = State::idle;
      of(thread).steps.fetch_add(1, std::memory_order_relaxed);
      --busy;
      to_caller.notify_all();
    }
  }

  static bool is_stopped(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const RanksStopped&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  // The culprits are working, or in a collective without waiting for a peer.
  [[nodiscard]] std::string stall_text(double limit_s) {
    const std::vector<int> in_wait = hooks.waiting();
    std::vector<int> culprits;
    std::vector<int> waits;
    int culprit = 0;
    for (int thread = 0; thread < static_cast<int>(threads.size()); ++thread) {
      const State state = of(thread).state;
      const int rank = thread % ranks;
      const bool for_peer =
          state == State::collective && std::find(in_wait.begin(), in_wait.end(), rank) != in_wait.end();
      if (state == State::working || (state == State::collective && !for_peer)) {
        if (culprits.empty()) culprit = thread;
        culprits.push_back(rank);
      } else if (for_peer) {
        waits.push_back(rank);
      }
    }
    if (culprits.empty()) return fmt::format("no rank has made progress for {:g} s", limit_s);
    std::string text = fmt::format("{} {} made no progress for {:g} s, last in {}", ranks_text(culprits),
                                   culprits.size() == 1 ? "has" : "have", limit_s, place_of(culprit));
    if (!waits.empty()) text += fmt::format("; {} {} waiting", ranks_text(waits), waits.size() == 1 ? "was" : "were");
    return text;
  }

  static thread_local int this_thread;
};

thread_local int RankThreads::Shared::this_thread = 0;

RankThreads::RankThreads(int ranks, int lanes, double stall_limit_s, Hooks hooks)
    : shared_(std::make_shared<Shared>()) {
  shared_->stall_limit_s = stall_limit_s;
  shared_->hooks = std::move(hooks);
  shared_->ranks = ranks;
  for (int thread = 0; thread < ranks * lanes; ++thread)
    shared_->threads.push_back(std::make_unique<Shared::PerThread>());
  for (int thread = 0; thread < ranks * lanes; ++thread) {
    shared_->of(thread).thread = std::thread([shared = shared_, thread] { shared->serve(thread); });
  }
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ending = true;
  }
  shared_->to_threads.notify_all();
  for (const auto& thread : shared_->threads) {
    if (shared_->lost.empty()) {
      thread->thread.join();
    } else {
      thread->thread.detach();
    }
  }
}

void RankThreads::at(State state, const std::string& what) {
  Shared::PerThread& own = shared_->of(Shared::this_thread);
  own.at.store(&what);
  own.state.store(state);
  own.steps.fetch_add(1, std::memory_order_relaxed);
}

bool RankThreads::hangs() const {
  const std::lock_guard lock(shared_->mutex);
  return !shared_->lost.empty();
}

void RankThreads::on_all(const std::function<void(int)>& work) {
  const int threads = static_cast<int>(shared_->threads.size());
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->lost.empty()) throw DeviceLost(shared_->lost);
    for (int thread = 0; thread < threads; ++thread) shared_->of(thread).work = [work, thread] { work(thread); };
    shared_->busy = threads;
  }
  shared_->to_threads.notify_all();
  wait_and_judge(0, threads, shared_->stall_limit_s);
}

void RankThreads::on_one(int rank, const std::function<void()>& work, double stall_limit_s) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->lost.empty()) throw DeviceLost(shared_->lost);
    shared_->of(rank).work = work;
    shared_->busy = 1;
  }
  shared_->to_threads.notify_all();
  wait_and_judge(rank, rank + 1, std::max(stall_limit_s, shared_->stall_limit_s));
}

void RankThreads::wait_and_judge(int first, int last, double stall_limit_s) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  std::uint64_t seen = shared.steps();
  Clock::time_point moved = Clock::now();
  while (shared.busy > 0) {
    shared.to_caller.wait_for(lock, look_every);
    if (const std::uint64_t now = shared.steps(); now != seen) {
      seen = now;
      moved = Clock::now();
    } else if (shared.busy > 0 && std::chrono::duration<double>(Clock::now() - moved).count() > stall_limit_s) {
      shared.lost = shared.stall_text(stall_limit_s);
      if (shared.first_failure) {
        shared.lost += fmt::format(", after rank {} had failed in {}", *shared.first_failure % shared.ranks,
                                   shared.place_of(*shared.first_failure));
      }
      shared.hooks.stop();
      throw DeviceLost(shared.lost);
    }
  }
  if (!shared.first_failure) return;
  const int thread = *shared.first_failure;
  const std::exception_ptr failure = shared.of(thread).failure;
  shared.first_failure.reset();
  for (int one = first; one < last; ++one) shared.of(one).failure = nullptr;
  const int rank = thread % shared.ranks;
  const std::string place = shared.place_of(thread);
  const bool continues = shared.hooks.restart();
  const auto tell = [&](const std::string& text, bool is_lost) {
    if (!continues) shared.lost = text;
    if (is_lost || !continues) throw DeviceLost(text);
    throw BackendError(text);
  };
  try {
    std::rethrow_exception(failure);
  } catch (const DeviceLost& e) {
    tell(fmt::format("rank {}: {} (in {})", rank, e.what(), place), true);
  } catch (const Unsupported&) {
    throw;
  } catch (const ProgramError&) {
    throw;
  } catch (const std::bad_alloc&) {
    tell(fmt::format("rank {}: out of memory (in {})", rank, place), false);
  } catch (const std::exception& e) {
    tell(fmt::format("rank {}: {} (in {})", rank, e.what(), place), false);
  }
}

}  // namespace gpubench

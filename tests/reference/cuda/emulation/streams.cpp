#include "tests/reference/cuda/emulation/streams.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using gpubench::cuda::emulation::StreamOrder;

// Long enough for an active host thread to enqueue more work.
constexpr auto quiet = std::chrono::microseconds(150);

struct Mark {
  bool done = false;
  Clock::time_point when;
};

struct Item {
  std::function<bool()> ready;  // empty: always ready
  std::function<void()> work;
};

}  // namespace

// CUDA's headers declare these types without a definition.
struct CUstream_st {
  std::deque<Item> items;
  bool running = false;
  std::exception_ptr fault;
};

struct CUevent_st {
  std::shared_ptr<Mark> mark;  // of the latest recording
};

namespace {

/// Runs all streams, one item at a time. The mutex guards everything except the work itself.
class Executor {
 public:
  Executor() : thread_([this] { serve(); }) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }
  void remove(cudaStream_t stream) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [stream] { return !stream->running; });
    std::erase(streams_, stream);
  }
  void push(cudaStream_t stream, Item item) {
    {
      const std::lock_guard lock(mutex_);
      stream->items.push_back(std::move(item));
      last_push_ = Clock::now();
    }
    changed_.notify_all();
  }
  template <class Look>
  auto locked(const Look& look) {
    const std::lock_guard lock(mutex_);
    return look();
  }
  void set_order(StreamOrder order, std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    order_ = order;
    random_ = seed * 2 + 1;
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      const bool any = std::any_of(streams_.begin(), streams_.end(), [](auto* s) { return !s->items.empty(); });
      if (!any) {
        changed_.wait(lock);
        continue;
      }
      cudaStream_t stream = Clock::now() - last_push_ < quiet ? nullptr : next();
      if (stream == nullptr) {
        changed_.wait_for(lock, quiet);
        continue;
      }
      run_first(stream, lock);
    }
  }

  cudaStream_t next() {
    std::vector<cudaStream_t> able;
    for (cudaStream_t stream : streams_) {
      if (!stream->items.empty() && (!stream->items.front().ready || stream->items.front().ready()))
        able.push_back(stream);
    }
    if (able.empty()) return nullptr;
    if (order_ == StreamOrder::oldest_first) return able.front();
    if (order_ == StreamOrder::newest_first) return able.back();
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's LCG, for the high bits
    return able[(random_ >> 33U) % able.size()];
  }

  void run_first(cudaStream_t stream, std::unique_lock<std::mutex>& lock) {
    const Item item = std::move(stream->items.front());
    stream->items.pop_front();
    if (!item.work) return;
    stream->running = true;
    const bool dawdles = order_ != StreamOrder::random;  // so that a host that does not wait sees unfinished work
    lock.unlock();
    if (dawdles) std::this_thread::sleep_for(quiet);
    std::exception_ptr fault;
    try {
      item.work();
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    stream->running = false;
    if (fault && !stream->fault) stream->fault = fault;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<cudaStream_t> streams_;  // oldest first
  Clock::time_point last_push_;
  StreamOrder order_ = StreamOrder::random;
  std::uint64_t random_ = 3;
  bool ending_ = false;
  std::thread thread_;  // last member: uses all of the above
};

Executor& executor() {
  static Executor instance;
  return instance;
}

// Never freed: an abandoned stream may still read it.
struct PinnedMemory {
  std::mutex mutex;
  std::deque<std::vector<std::max_align_t>> all;
};
PinnedMemory& pinned() {
  static PinnedMemory instance;
  return instance;
}

bool is_idle(cudaStream_t stream) {
  return executor().locked([stream] { return stream->items.empty() && !stream->running; });
}

}  // namespace

namespace gpubench::cuda::emulation {

void set_stream_order(StreamOrder order, std::uint64_t seed) { executor().set_order(order, seed); }

void on_stream(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  executor().push(stream, {nullptr, std::move(work)});
}

void hold_stream(cudaStream_t stream, std::function<bool()> ready) {
  executor().push(stream, {std::move(ready), nullptr});
}

bool is_pinned(const void* memory) {
  const std::lock_guard lock(pinned().mutex);
  return std::ranges::any_of(pinned().all, [memory](const auto& block) {
    return memory >= block.data() && memory < block.data() + block.size();
  });
}

void rethrow_fault(cudaStream_t stream) {
  const std::exception_ptr fault = executor().locked([stream] { return stream->fault; });
  if (fault) std::rethrow_exception(fault);
}

}  // namespace gpubench::cuda::emulation

cudaError_t cudaSetDevice(int /*device*/) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }  // tests wait for their streams
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  const std::lock_guard lock(pinned().mutex);
  *memory = pinned().all.emplace_back(bytes / sizeof(std::max_align_t) + 1).data();
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* /*memory*/) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new CUstream_st;
  executor().add(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  executor().remove(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return is_idle(stream) ? cudaSuccess : cudaErrorNotReady; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto mark = std::make_shared<Mark>();
  executor().locked([&] { event->mark = mark; });
  executor().push(stream, {nullptr, [mark] { executor().locked([&] { *mark = {true, Clock::now()}; }); }});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::shared_ptr<Mark> mark = executor().locked([event] { return event->mark; });
  if (mark != nullptr)  // no recording: no wait, as in CUDA
    executor().push(stream, {[mark] { return mark->done; }, nullptr});
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return executor().locked([&] {
    if (begin->mark == nullptr || end->mark == nullptr || !begin->mark->done || !end->mark->done)
      return cudaErrorNotReady;
    *ms = std::chrono::duration<float, std::milli>(end->mark->when - begin->mark->when).count();
    return cudaSuccess;
  });
}

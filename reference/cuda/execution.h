// Bound work on its way to the device: put together in stream order or as a CUDA graph, run, and timed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// All of them, one after another on the stream.
[[nodiscard]] Launch in_stream_order(std::span<const Launch> launches);

/// Whether all of them can be recorded in a graph.
[[nodiscard]] bool are_capturable(std::span<const Launch> launches);

/// A launch that replays what another enqueued while it was captured.
class GraphLaunch final : public CudaLaunch {
 public:
  /// Captures `held` on `stream`; nothing runs. Throws BackendError where something in it cannot be captured.
  GraphLaunch(Launch held, cudaStream_t stream);
  void enqueue(cudaStream_t stream) const override;
  /// As a part of a larger graph.
  [[nodiscard]] cudaGraph_t graph() const { return graph_.get(); }

 private:
  Launch held_;  // the graph refers to what it owns
  Graph graph_;
  GraphExec executable_;
};

/// Runs of rotating copies, in as few host calls as possible: run i is copies[i mod copies.size()]. Where the copies
/// are graphs, runs are joined into larger ones, so that the host is not what is measured.
class RunQueue {
 public:
  /// `batch`: how many runs enqueue() will usually be asked for. Graphs for runs [0, total) are made here. Copies are
  /// not kept: nothing may be enqueued once they are gone.
  RunQueue(std::span<const Launch> copies, std::int64_t batch, std::int64_t total, cudaStream_t stream);
  /// Enqueues runs [first, first + count).
  void enqueue(std::int64_t first, std::int64_t count) const;
  /// Host calls that enqueue(first, count) needs.
  [[nodiscard]] std::int64_t host_calls(std::int64_t count) const;
  /// Whether it was made from these copies for this batch, so that it can serve another round.
  [[nodiscard]] bool serves(std::span<const Launch> copies, std::int64_t batch, std::int64_t total) const;
  /// Whether all copies are still there.
  [[nodiscard]] bool is_usable() const;

 private:
  [[nodiscard]] GraphExec joined(std::int64_t first) const;

  std::vector<std::weak_ptr<Launch::element_type>> copies_;
  std::vector<const CudaLaunch*> launches_;
  std::int64_t batch_ = 1;
  std::int64_t total_ = 0;
  std::int64_t chunk_ = 1;                    // runs joined into one graph; 1: none are
  std::map<std::int64_t, GraphExec> chunks_;  // by the copy they begin with
  cudaStream_t stream_ = nullptr;
};

/// The queues of cases that take turns: joining graphs takes the host longer than many a round.
class RunQueues {
 public:
  /// As many as cases take turns (Engine); of more, the queue that has been idle longest is made anew.
  static constexpr std::size_t most = 16;
  /// One that serves these, kept or made. Valid until the next call, before which what finished cases left is freed.
  [[nodiscard]] const RunQueue& queue_of(std::span<const Launch> copies, std::int64_t batch, std::int64_t total,
                                         cudaStream_t stream);
  [[nodiscard]] std::size_t size() const { return queues_.size(); }

 private:
  std::deque<std::unique_ptr<RunQueue>> queues_;  // the last used first
};

/// One timed round on a stream: warm-up, then samples by the device's own clock and by the host's.
class RoundTimer {
 public:
  explicit RoundTimer(cudaStream_t stream) : stream_(stream) {}

  /// As Backend::time(). Short samples are taken twice: once queued behind each other, by events, so that the device
  /// never waits for the host; once alone, by the host's clock, device idle at both ends. Long ones (above 5 ms) are
  /// taken once, by both.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan);

 private:
  /// Returns nanoseconds of one run, roughly. `calls`: how many there were.
  double warm_up(const RoundPlan& plan, std::int64_t& calls);
  void queued(const RoundPlan& plan, double run_ns, RoundTimes& times);
  void alone(const RoundPlan& plan, bool by_events, RoundTimes& times);
  void make_events(int samples);
  [[nodiscard]] double elapsed_ns(int sample) const;
  void wait() const;

  cudaStream_t stream_;
  RunQueues queues_;
  const RunQueue* queue_ = nullptr;  // of the round that is being timed
  std::vector<Event> begin_;
  std::vector<Event> end_;
};

}  // namespace gpubench::cuda

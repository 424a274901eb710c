// Running and timing bound work, in stream order or as a CUDA graph.
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

[[nodiscard]] Launch in_stream_order(std::span<const Launch> launches);

[[nodiscard]] bool are_capturable(std::span<const Launch> launches);

/// Replays the captured work of another launch.
class GraphLaunch final : public CudaLaunch {
 public:
  /// Captures `held` on `stream` without running it. Throws BackendError if something in it cannot be captured.
  GraphLaunch(Launch held, cudaStream_t stream);
  void enqueue(cudaStream_t stream) const override;
  /// For use as a child graph.
  [[nodiscard]] cudaGraph_t graph() const { return graph_.get(); }

 private:
  Launch held_;  // the graph refers to its memory
  Graph graph_;
  GraphExec executable_;
};

/// Runs of rotating copies: run i is copies[i mod copies.size()]. Runs of graphs are joined into larger graphs, so that
/// timings do not measure the host.
class RunQueue {
 public:
  /// `batch`: the usual `count` of enqueue(). Makes graphs for runs [0, total). Does not own the copies, which must
  /// outlive the calls to enqueue().
  RunQueue(std::span<const Launch> copies, std::int64_t batch, std::int64_t total, cudaStream_t stream);
  void enqueue(std::int64_t first, std::int64_t count) const;
  /// Host calls per enqueue() of `count` runs.
  [[nodiscard]] std::int64_t host_calls(std::int64_t count) const;
  /// Whether it was made from these copies for this batch.
  [[nodiscard]] bool serves(std::span<const Launch> copies, std::int64_t batch, std::int64_t total) const;
  [[nodiscard]] bool is_usable() const;

 private:
  [[nodiscard]] GraphExec joined(std::int64_t first) const;

  std::vector<std::weak_ptr<Launch::element_type>> copies_;
  std::vector<const CudaLaunch*> launches_;
  std::int64_t batch_ = 1;
  std::int64_t total_ = 0;
  std::int64_t chunk_ = 1;                    // runs per graph; 1: not joined
  std::map<std::int64_t, GraphExec> chunks_;  // by the first copy
  cudaStream_t stream_ = nullptr;
};

/// Queues of cases that take turns: joining graphs can take the host longer than a round.
class RunQueues {
 public:
  /// Number of cases that take turns (Engine). Beyond it, the queue that has been idle longest is replaced.
  static constexpr std::size_t most = 16;
  /// A queue for these copies, kept or made; valid until the next call. Frees the queues of finished cases first.
  [[nodiscard]] const RunQueue& queue_of(std::span<const Launch> copies, std::int64_t batch, std::int64_t total,
                                         cudaStream_t stream);
  [[nodiscard]] std::size_t size() const { return queues_.size(); }

 private:
  std::deque<std::unique_ptr<RunQueue>> queues_;  // most recently used first
};

/// One timed round on a stream: warm-up, then samples by device events and by the host's clock.
class RoundTimer {
 public:
  explicit RoundTimer(cudaStream_t stream) : stream_(stream) {}

  /// As Backend::time(). Samples up to 5 ms are taken twice: queued behind each other, by events, so that the device
  /// never waits for the host; and alone, by the host's clock, with an idle device at both ends. Longer ones are taken
  /// once, by both clocks.
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan);

 private:
  /// Returns the approximate nanoseconds per run. `calls`: number of host calls made.
  double warm_up(const RoundPlan& plan, std::int64_t& calls);
  void queued(const RoundPlan& plan, double run_ns, RoundTimes& times);
  void alone(const RoundPlan& plan, bool by_events, RoundTimes& times);
  void make_events(int samples);
  [[nodiscard]] double elapsed_ns(int sample) const;
  void wait() const;

  cudaStream_t stream_;
  RunQueues queues_;
  const RunQueue* queue_ = nullptr;
  std::vector<Event> begin_;
  std::vector<Event> end_;
};

}  // namespace gpubench::cuda

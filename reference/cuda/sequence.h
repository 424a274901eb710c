// Bound work put together: in stream order, or captured into a CUDA graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

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
  /// `batch`: how many runs enqueue() will usually be asked for. Graphs for runs [0, total) are made here.
  RunQueue(std::span<const Launch> copies, std::int64_t batch, std::int64_t total, cudaStream_t stream);
  /// Enqueues runs [first, first + count).
  void enqueue(std::int64_t first, std::int64_t count) const;
  /// Host calls that enqueue(first, count) needs.
  [[nodiscard]] std::int64_t host_calls(std::int64_t count) const;
  /// Whether it was made from these copies for this batch, so that it can serve another round.
  [[nodiscard]] bool serves(std::span<const Launch> copies, std::int64_t batch, std::int64_t total) const;

 private:
  [[nodiscard]] GraphExec joined(std::int64_t first) const;

  std::vector<Launch> copies_;
  std::vector<const CudaLaunch*> launches_;
  std::int64_t batch_ = 1;
  std::int64_t total_ = 0;
  std::int64_t chunk_ = 1;                    // runs joined into one graph; 1: none are
  std::map<std::int64_t, GraphExec> chunks_;  // by the copy they begin with
  cudaStream_t stream_ = nullptr;
};

}  // namespace gpubench::cuda

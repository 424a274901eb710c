#include "reference/cuda/sequence.h"

#include <algorithm>
#include <numeric>

namespace gpubench::cuda {
namespace {

// Ends the capture also when what is captured throws: a stream left capturing refuses everything afterwards.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning to capture a graph");
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (ended_) return;
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
  }
  Graph end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "ending the capture of a graph");
    return Graph(graph);
  }

 private:
  cudaStream_t stream_;
  bool ended_ = false;
};

GraphExec instantiate(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, graph, 0), "instantiating a graph");
  GraphExec executable(made);
  check(cudaGraphUpload(executable.get(), stream), "uploading a graph");  // or the first launch would pay for it
  return executable;
}

// More runs in one graph would not make the host's share smaller, only the graph larger.
constexpr std::int64_t most_joined = 256;

}  // namespace

bool are_capturable(std::span<const Launch> launches) {
  return std::all_of(launches.begin(), launches.end(),
                     [](const Launch& launch) { return own_launch(launch).is_capturable(); });
}

Launch in_stream_order(std::span<const Launch> launches) {
  for (const Launch& launch : launches) (void)own_launch(launch);
  return launch_of([held = std::vector<Launch>(launches.begin(), launches.end())](cudaStream_t stream) {
    for (const Launch& launch : held) static_cast<const CudaLaunch&>(*launch).enqueue(stream);
  });
}

GraphLaunch::GraphLaunch(Launch held, cudaStream_t stream) : held_(std::move(held)) {
  Capture capture(stream);
  own_launch(held_).enqueue(stream);
  graph_ = capture.end();
  executable_ = instantiate(graph_.get(), stream);
}

void GraphLaunch::enqueue(cudaStream_t stream) const {
  check(cudaGraphLaunch(executable_.get(), stream), "launching a graph");
}

RunQueue::RunQueue(std::span<const Launch> copies, std::int64_t batch, std::int64_t total, cudaStream_t stream)
    : copies_(copies.begin(), copies.end()), batch_(batch), total_(total), stream_(stream) {
  for (const Launch& copy : copies_) launches_.push_back(&own_launch(copy));
  const bool graphs = std::all_of(launches_.begin(), launches_.end(), [](const CudaLaunch* launch) {
    return dynamic_cast<const GraphLaunch*>(launch) != nullptr;
  });
  if (!graphs || batch < 2) return;
  chunk_ = std::gcd(batch, most_joined);
  if (chunk_ == 1) return;
  const auto count = static_cast<std::int64_t>(launches_.size());
  for (std::int64_t first = 0; first < total_; first += chunk_) {
    if (!chunks_.contains(first % count)) chunks_.emplace(first % count, joined(first));
  }
}

GraphExec RunQueue::joined(std::int64_t first) const {
  cudaGraph_t made = nullptr;
  check(cudaGraphCreate(&made, 0), "creating a graph");
  const Graph graph(made);
  cudaGraphNode_t last = nullptr;
  for (std::int64_t run = first; run < first + chunk_; ++run) {
    const auto* part = static_cast<const GraphLaunch*>(launches_[static_cast<std::size_t>(run) % launches_.size()]);
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddChildGraphNode(&node, graph.get(), last == nullptr ? nullptr : &last, last == nullptr ? 0U : 1U,
                                     part->graph()),
          "joining graphs");
    last = node;
  }
  return instantiate(graph.get(), stream_);
}

void RunQueue::enqueue(std::int64_t first, std::int64_t count) const {
  const auto copies = static_cast<std::int64_t>(launches_.size());
  const std::int64_t end = first + count;
  while (first < end) {
    const auto found = first + chunk_ <= end ? chunks_.find(first % copies) : chunks_.end();
    if (found != chunks_.end()) {
      check(cudaGraphLaunch(found->second.get(), stream_), "launching a graph");
      first += chunk_;
    } else {
      launches_[static_cast<std::size_t>(first % copies)]->enqueue(stream_);
      ++first;
    }
  }
}

std::int64_t RunQueue::host_calls(std::int64_t count) const { return count / chunk_ + count % chunk_; }

bool RunQueue::serves(std::span<const Launch> copies, std::int64_t batch, std::int64_t total) const {
  return batch == batch_ && total == total_ && std::equal(copies.begin(), copies.end(), copies_.begin(), copies_.end());
}

}  // namespace gpubench::cuda

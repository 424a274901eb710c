#include "reference/cuda/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "reference/cuda/kernels/runtime.h"

namespace gpubench::cuda {
namespace {

// Ends the capture even after an exception: a capturing stream refuses all later work.
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
  check(cudaGraphUpload(executable.get(), stream), "uploading a graph");  // else the first launch uploads
  return executable;
}

// Larger graphs no longer reduce the host's share.
constexpr std::int64_t max_joined = 256;

using Clock = std::chrono::steady_clock;

double nanoseconds(Clock::duration elapsed) { return std::chrono::duration<double, std::nano>(elapsed).count(); }

// The gap before the first kernel is negligible for samples this long.
constexpr double long_sample_ns = 5e6;
// An upper bound of the host time per launch, and the number of launches queued before the host waits.
constexpr double host_call_ns = 5e3;
constexpr std::int64_t max_queued = 256;

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
  for (const Launch& copy : copies) launches_.push_back(&own_launch(copy));
  const bool graphs = std::all_of(launches_.begin(), launches_.end(), [](const CudaLaunch* launch) {
    return dynamic_cast<const GraphLaunch*>(launch) != nullptr;
  });
  if (!graphs || batch < 2) return;
  chunk_ = std::gcd(batch, max_joined);
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
  return batch == batch_ && total == total_ &&
         std::equal(copies.begin(), copies.end(), copies_.begin(), copies_.end(),
                    [](const Launch& given, const auto& known) { return given == known.lock(); });
}

bool RunQueue::is_usable() const {
  return std::ranges::none_of(copies_, [](const auto& copy) { return copy.expired(); });
}

const RunQueue& RunQueues::queue_of(std::span<const Launch> copies, std::int64_t batch, std::int64_t total,
                                    cudaStream_t stream) {
  std::erase_if(queues_, [](const auto& queue) { return !queue->is_usable(); });
  const auto found =
      std::ranges::find_if(queues_, [&](const auto& queue) { return queue->serves(copies, batch, total); });
  if (found != queues_.end()) {
    std::rotate(queues_.begin(), found, found + 1);
  } else {
    if (queues_.size() == most) queues_.pop_back();  // frees memory before the next one takes it
    queues_.push_front(std::make_unique<RunQueue>(copies, batch, total, stream));
  }
  return *queues_.front();
}

RoundTimes RoundTimer::time(std::span<const Launch> copies, const RoundPlan& plan) {
  if (copies.empty() || plan.samples < 0 || plan.batch < 1) {
    throw BackendError(
        fmt::format("cuda: a round of {} samples of {} runs over {} copies; expected at least one run and copy",
                    plan.samples, plan.batch, copies.size()));
  }
  const std::int64_t total = plan.samples * plan.batch;
  queue_ = &queues_.queue_of(copies, plan.batch, total, stream_);
  make_events(plan.samples);
  RoundTimes times;
  const double run_ns = warm_up(plan, times.runs);
  times.device_ns.resize(static_cast<std::size_t>(plan.samples));
  times.wall_ns.resize(static_cast<std::size_t>(plan.samples));
  const bool is_long = run_ns * static_cast<double>(plan.batch) >= long_sample_ns;
  if (!is_long) queued(plan, run_ns, times);
  alone(plan, is_long, times);
  times.runs += is_long ? total : 2 * total;
  return times;
}

double RoundTimer::warm_up(const RoundPlan& plan, std::int64_t& calls) {
  const std::int64_t at_once = std::min<std::int64_t>(plan.batch, max_queued);
  const Clock::time_point start = Clock::now();
  calls = 0;
  double run_ns = 0.0;
  // At least one run, for the estimate; a round without warm-up follows an earlier round.
  do {
    const Clock::time_point begin = Clock::now();
    const std::int64_t count = calls == 0 ? 1 : at_once;
    queue_->enqueue(0, count);
    wait();
    run_ns = nanoseconds(Clock::now() - begin) / static_cast<double>(count);
    calls += count;
  } while (calls < plan.warmup_calls || nanoseconds(Clock::now() - start) < plan.warmup_s * 1e9);
  return run_ns;
}

void RoundTimer::queued(const RoundPlan& plan, double run_ns, RoundTimes& times) {
  const std::int64_t calls = std::min(queue_->host_calls(plan.batch), max_queued);
  // Runs longer than their launch keep the queue full, except for the first.
  const double host_ns = run_ns > 50e3 ? 2 * host_call_ns : host_call_ns * static_cast<double>(calls + 2);
  for (int sample = 0; sample < plan.samples; ++sample) {
    const auto index = static_cast<std::size_t>(sample);
    launch_spin(static_cast<std::uint64_t>(host_ns), stream_);
    check_launch("the spin kernel");
    check(cudaEventRecord(begin_[index].get(), stream_), "recording an event");
    queue_->enqueue(sample * plan.batch, plan.batch);
    check(cudaEventRecord(end_[index].get(), stream_), "recording an event");
  }
  wait();
  for (int sample = 0; sample < plan.samples; ++sample) {
    times.device_ns[static_cast<std::size_t>(sample)] = elapsed_ns(sample);
  }
}

void RoundTimer::alone(const RoundPlan& plan, bool by_events, RoundTimes& times) {
  for (int sample = 0; sample < plan.samples; ++sample) {
    const auto index = static_cast<std::size_t>(sample);
    const Clock::time_point begin = Clock::now();
    if (by_events) check(cudaEventRecord(begin_[index].get(), stream_), "recording an event");
    queue_->enqueue(sample * plan.batch, plan.batch);
    if (by_events) check(cudaEventRecord(end_[index].get(), stream_), "recording an event");
    wait();
    times.wall_ns[index] = nanoseconds(Clock::now() - begin);
    if (by_events) times.device_ns[index] = elapsed_ns(sample);
  }
}

void RoundTimer::make_events(int samples) {
  while (begin_.size() < static_cast<std::size_t>(samples)) {
    begin_.push_back(make_event());
    end_.push_back(make_event());
  }
}

double RoundTimer::elapsed_ns(int sample) const {
  float ms = 0.0F;
  const auto index = static_cast<std::size_t>(sample);
  check(cudaEventElapsedTime(&ms, begin_[index].get(), end_[index].get()), "reading an elapsed time");
  return static_cast<double>(ms) * 1e6;
}

void RoundTimer::wait() const { check(cudaStreamSynchronize(stream_), "waiting for the device"); }

}  // namespace gpubench::cuda

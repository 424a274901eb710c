#include "reference/cuda/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/cuda/kernels/runtime.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int first_samples = 3;
constexpr int final_samples = 15;
constexpr std::size_t finalists = 4;
constexpr std::size_t max_runs = 16;  // per sample: enough to hide the cost of events and of the spin
constexpr auto race_warm_up = std::chrono::milliseconds(20);

struct Runner {
  Plan plan;
  std::vector<Launch> launches;  // one per set
  std::vector<float> ms{};
  std::uint64_t enqueue_ns = std::numeric_limits<std::uint64_t>::max();  // shortest host time of a sample's runs
  std::string objection{};

  [[nodiscard]] float median() const {
    std::vector<float> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? std::numeric_limits<float>::infinity() : sorted[sorted.size() / 2];
  }
  [[nodiscard]] std::size_t runs() const { return std::min(launches.size(), max_runs); }
};

bool is_faster(const Runner& a, const Runner& b) { return a.median() < b.median(); }

class Race {
 public:
  explicit Race(cudaStream_t stream) : stream_(stream), begin_(make_event()), end_(make_event()) {}

  // Runs every set once, untimed, to load all kernels; false if the library refuses the work.
  bool qualifies(const Runner& runner) {
    try {
      for (const Launch& launch : runner.launches) static_cast<const CudaLaunch&>(*launch).enqueue(stream_);
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::runtime_error&) {
      check(cudaStreamSynchronize(stream_), "waiting for a candidate");
      return false;
    }
    check(cudaStreamSynchronize(stream_), "waiting for a candidate");
    return true;
  }

  // Runs the candidates in turns until the device reaches its sustained clock rate.
  void warm_up(std::span<Runner> runners) {
    const Clock::time_point begin = Clock::now();
    do {
      for (Runner& runner : runners) {
        enqueue(runner);
        check(cudaStreamSynchronize(stream_), "waiting for a candidate");
      }
    } while (Clock::now() - begin < race_warm_up);
  }

  void time(std::span<Runner> runners, int samples) {
    for (Runner& runner : runners) runner.ms.clear();
    for (int sample = 0; sample < samples; ++sample) {
      for (Runner& runner : runners) time_once(runner);
    }
  }

 private:
  // Runs the sets twice and times the second pass: the first absorbs the previous candidate's clock rate and cache. The
  // device spins until the host has queued both, so launches of many kernels do not wait for the host.
  void time_once(Runner& runner) {
    launch_spin(20000 + 4 * runner.enqueue_ns, stream_);
    check_launch("the spin kernel");
    enqueue(runner);
    check(cudaEventRecord(begin_.get(), stream_), "recording an event");
    enqueue(runner);
    check(cudaEventRecord(end_.get(), stream_), "recording an event");
    check(cudaStreamSynchronize(stream_), "waiting for a candidate");
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "reading an elapsed time");
    runner.ms.push_back(ms);
  }

  void enqueue(Runner& runner) {
    const Clock::time_point begin = Clock::now();
    for (std::size_t run = 0; run < runner.runs(); ++run) {
      static_cast<const CudaLaunch&>(*runner.launches[next_]).enqueue(stream_);
      next_ = (next_ + 1) % runner.launches.size();
    }
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    runner.enqueue_ns = std::min(runner.enqueue_ns, static_cast<std::uint64_t>(ns));
  }

  cudaStream_t stream_;
  Event begin_, end_;
  std::size_t next_ = 0;  // shared by all candidates, so that none finds the last one's data cached
};

// The `finalists` fastest that the judge accepts (all are accepted unless `judged`); if it rejects all, the fastest.
// Adds its objections to `rejected`.
std::vector<Runner> finalists_of(const OpCall& call, std::vector<Runner> runners, bool judged, TuningSets& sets,
                                 const std::function<void()>& alive, std::vector<std::string>& rejected) {
  std::stable_sort(runners.begin(), runners.end(), is_faster);
  std::vector<Runner> best;
  for (Runner& runner : runners) {
    if (best.size() == finalists) break;
    if (alive) alive();
    if (judged) runner.objection = sets.objection(call, runner.launches.front());
    if (runner.objection.empty()) {
      best.push_back(std::move(runner));
    } else {
      rejected.push_back(runner.plan->implementation() + ": " + runner.objection);
    }
  }
  if (best.empty()) best.push_back(std::move(runners.front()));
  return best;
}

std::optional<TuningSets> try_sets(std::span<const TensorSpec> tensors, const TuningData& data,
                                   std::size_t workspace_bytes, const CudaContext& context) {
  try {
    return std::optional<TuningSets>(std::in_place, tensors, data, workspace_bytes, context);
  } catch (const DeviceLost&) {
    throw;
  } catch (const BackendError&) {
    return std::nullopt;  // out of memory: do not refuse the case for tuning
  }
}

}  // namespace

Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                const TuningData& data, const CudaContext& context) {
  if (candidates.empty()) refuse(call, "the library has no algorithm for it");
  const PlanOptions& options = context.options;
  if (!options.pinned.empty()) {
    if (const Plan* pinned = find_plan(candidates, options.pinned); pinned != nullptr) return *pinned;
    refuse(call, fmt::format("pinned to '{}', which is not among the {} algorithms of the library", options.pinned,
                             candidates.size()));
  }
  if (const Plan* known = find_plan(candidates, options.remembered); known != nullptr)
    return chosen<CudaPlan>(*known, Choice::remembered);
  if (candidates.size() == 1) return candidates.front();
  if (context.stream == nullptr) return chosen<CudaPlan>(candidates.front(), Choice::untimed);
  std::size_t workspace_bytes = 0;
  for (const Plan& plan : candidates) workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  std::optional<TuningSets> sets = try_sets(tensors, data, workspace_bytes, context);
  if (!sets) return chosen<CudaPlan>(candidates.front(), Choice::untimed);

  Race race(context.stream);
  std::vector<Runner> runners;
  for (const Plan& plan : candidates) {
    if (options.alive) options.alive();
    Runner runner{plan, sets->bind(dynamic_cast<const CudaPlan&>(*plan))};
    if (race.qualifies(runner)) runners.push_back(std::move(runner));
  }
  if (runners.empty()) refuse(call, fmt::format("none of the library's {} algorithms runs", candidates.size()));
  race.warm_up(runners);
  race.time(runners, first_samples);
  std::vector<std::string> rejected;
  std::vector<Runner> best =
      finalists_of(call, std::move(runners), options.judge != nullptr && data.judged, *sets, options.alive, rejected);
  if (best.size() > 1) race.time(best, final_samples);
  return chosen<CudaPlan>(std::min_element(best.begin(), best.end(), is_faster)->plan, Choice::timed,
                          std::move(rejected));
}

}  // namespace gpubench::cuda

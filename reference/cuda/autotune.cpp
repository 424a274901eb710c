#include "reference/cuda/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "reference/cuda/kernels/scramble.h"
#include "reference/cuda/kernels/spin.h"

namespace gpubench::cuda {
namespace {

constexpr double first_share_of_memory = 0.25;
constexpr int most_sets = 16;
constexpr int first_samples = 3;
constexpr int final_samples = 15;
constexpr std::size_t finalists = 4;

ScrambleType scramble_type(DType type) {
  switch (type) {
    case DType::f64: return ScrambleType::f64;
    case DType::f32: return ScrambleType::f32;
    case DType::f16: return ScrambleType::f16;
    case DType::bf16: return ScrambleType::bf16;
    case DType::f8_e4m3: return ScrambleType::f8_e4m3;
    case DType::f8_e5m2: return ScrambleType::f8_e5m2;
    case DType::i32: return ScrambleType::i32;
    case DType::u8: return ScrambleType::u8;
  }
  return ScrambleType::u8;
}

// Enough sets that together they are three times the second-level cache, as cold copies in a measurement are.
int sets_for(std::int64_t bytes, const DeviceTraits& device) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
  const std::int64_t one = std::max<std::int64_t>(bytes, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>(1 + 3 * device.l2_bytes / one, 1, most_sets);
  const auto fitting = static_cast<std::int64_t>(static_cast<double>(free_bytes) * first_share_of_memory) / one;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, fitting)));
}

// Scratch tensors in rotating sets, and a workspace that they share.
class TuningSets {
 public:
  TuningSets(std::span<const TensorSpec> specs, const Aliases& aliases, std::size_t workspace_bytes,
             const CudaContext& context) {
    std::int64_t bytes = 0;
    for (const TensorSpec& spec : specs) bytes += spec.bytes();
    workspace_ = allocate(workspace_bytes);
    workspace_bytes_ = workspace_bytes;
    const int sets = sets_for(bytes, context.device);
    std::uint64_t seed = 1;
    for (int set = 0; set < sets; ++set) {
      std::vector<Tensor> tensors;
      for (const TensorSpec& spec : specs) {
        const auto size = static_cast<std::size_t>(spec.bytes());
        memory_.push_back(allocate(size));
        launch_scramble(scramble_type(spec.dtype), memory_.back().get(), size / size_of(spec.dtype), seed++,
                        context.stream);
        check_launch("the scramble kernel");
        tensors.push_back({spec, memory_.back().get()});
      }
      for (const auto& [output, input] : aliases) {
        tensors[static_cast<std::size_t>(output)].data = tensors[static_cast<std::size_t>(input)].data;
      }
      sets_.push_back(std::move(tensors));
    }
    check(cudaStreamSynchronize(context.stream), "filling scratch tensors");
  }

  [[nodiscard]] std::vector<Launch> bind(const CudaPlan& plan) const {
    std::vector<Launch> launches;
    for (const std::vector<Tensor>& tensors : sets_) {
      launches.push_back(plan.bind(tensors, {workspace_.get(), workspace_bytes_}));
    }
    return launches;
  }

 private:
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<std::vector<Tensor>> sets_;
  std::shared_ptr<std::byte> workspace_;
  std::size_t workspace_bytes_ = 0;
};

struct Runner {
  Plan plan;
  std::vector<Launch> launches;
  std::vector<float> ms;

  [[nodiscard]] float median() const {
    std::vector<float> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? std::numeric_limits<float>::infinity() : sorted[sorted.size() / 2];
  }
};

class Race {
 public:
  explicit Race(cudaStream_t stream) : stream_(stream), begin_(make_event()), end_(make_event()) {}

  // One run of every set, untimed; false when the library refuses the work after all.
  bool warm_up(const Runner& runner) {
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

  void sample(Runner& runner) {
    launch_spin(20000 + 5000 * runner.launches.size(), stream_);
    check_launch("the spin kernel");
    check(cudaEventRecord(begin_.get(), stream_), "recording an event");
    for (const Launch& launch : runner.launches) static_cast<const CudaLaunch&>(*launch).enqueue(stream_);
    check(cudaEventRecord(end_.get(), stream_), "recording an event");
    check(cudaStreamSynchronize(stream_), "waiting for a candidate");
    float ms = 0.0F;
    check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "reading the time between two events");
    runner.ms.push_back(ms);
  }

 private:
  cudaStream_t stream_;
  Event begin_, end_;
};

std::optional<TuningSets> try_sets(std::span<const TensorSpec> tensors, const Aliases& aliases,
                                   std::size_t workspace_bytes, const CudaContext& context) {
  try {
    return std::optional<TuningSets>(std::in_place, tensors, aliases, workspace_bytes, context);
  } catch (const DeviceLost&) {
    throw;
  } catch (const BackendError&) {
    return std::nullopt;  // out of memory: tuning is not worth refusing the case for
  }
}

// The plan, and how it came to be taken.
class ChosenPlan final : public CudaPlan {
 public:
  ChosenPlan(Plan plan, Choice choice) : plan_(std::move(plan)), choice_(choice) {}
  [[nodiscard]] std::string implementation() const override { return plan_->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  [[nodiscard]] Choice choice() const override { return choice_; }
  [[nodiscard]] Launch bind(std::span<const Tensor> tensors, Workspace workspace) const override {
    return dynamic_cast<const CudaPlan&>(*plan_).bind(tensors, workspace);
  }

 private:
  Plan plan_;
  Choice choice_;
};

Plan chosen(const Plan& plan, Choice choice) { return std::make_shared<ChosenPlan>(plan, choice); }

const Plan* named(std::span<const Plan> candidates, const std::string& implementation) {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Plan& plan) { return plan->implementation() == implementation; });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace

Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                const Aliases& aliases, const CudaContext& context) {
  if (candidates.empty()) refuse(call, "the library has no algorithm for it");
  if (!call.pinned.empty()) {
    if (const Plan* pinned = named(candidates, call.pinned); pinned != nullptr) return *pinned;
    refuse(call, fmt::format("pinned to {}, which is not among the {} algorithms that the library proposes here",
                             call.pinned, candidates.size()));
  }
  if (candidates.size() == 1) return candidates.front();
  if (const Plan* known = named(candidates, call.remembered); known != nullptr)
    return chosen(*known, Choice::remembered);
  std::size_t workspace_bytes = 0;
  for (const Plan& plan : candidates) workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  const std::optional<TuningSets> sets = try_sets(tensors, aliases, workspace_bytes, context);
  if (!sets) return chosen(candidates.front(), Choice::untimed);

  Race race(context.stream);
  std::vector<Runner> runners;
  for (const Plan& plan : candidates) {
    Runner runner{plan, sets->bind(dynamic_cast<const CudaPlan&>(*plan)), {}};
    if (race.warm_up(runner)) runners.push_back(std::move(runner));
  }
  if (runners.empty()) refuse(call, fmt::format("none of the library's {} algorithms runs", candidates.size()));
  for (Runner& runner : runners) {
    for (int sample = 0; sample < first_samples; ++sample) race.sample(runner);
  }
  const auto faster = [](const Runner& a, const Runner& b) { return a.median() < b.median(); };
  std::stable_sort(runners.begin(), runners.end(), faster);
  runners.resize(std::min(runners.size(), finalists));
  for (Runner& runner : runners) runner.ms.clear();
  for (int sample = 0; sample < final_samples; ++sample) {
    for (Runner& runner : runners) race.sample(runner);
  }
  return chosen(std::min_element(runners.begin(), runners.end(), faster)->plan, Choice::timed);
}

}  // namespace gpubench::cuda

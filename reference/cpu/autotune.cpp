#include "reference/cpu/kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "reference/cpu/host.h"

namespace gpubench::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double max_relative_time = 0.97;
// No round starts after this time, except for the first `min_rounds`. A candidate's shortest run counts, as other
// processes disturb it least.
constexpr double rounds_s = 0.01;
constexpr int min_rounds = 2;
constexpr int max_rounds = 12;

/// Operands and a workspace in one allocation. All numbers are 1 (bf16) or close to it (f32): a product's time does not
/// depend on them, unless they are denormal.
class ScratchOperands {
 public:
  ScratchOperands(std::span<const TensorSpec> specs, std::size_t workspace_bytes) {
    std::size_t bytes = aligned(workspace_bytes);
    for (const TensorSpec& spec : specs) bytes += aligned(static_cast<std::size_t>(spec.bytes()));
    if (static_cast<std::int64_t>(bytes) > host_memory().available_bytes / 2) return;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, std::max(bytes, alignment))));
    if (!memory_) return;
    std::fill_n(reinterpret_cast<std::uint32_t*>(memory_.get()), bytes / sizeof(std::uint32_t), 0x3f803f80U);
    workspace = {memory_.get(), workspace_bytes};
    std::byte* next = memory_.get() + aligned(workspace_bytes);
    for (const TensorSpec& spec : specs) {
      tensors.push_back({spec, next});
      next += aligned(static_cast<std::size_t>(spec.bytes()));
    }
  }
  explicit operator bool() const { return memory_ != nullptr; }

  std::vector<Tensor> tensors;
  Workspace workspace;

 private:
  static constexpr std::size_t alignment = 4096;
  static std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  std::unique_ptr<std::byte, decltype(&std::free)> memory_{nullptr, std::free};
};

double seconds_of(const CpuLaunch& launch) {
  const Clock::time_point begin = Clock::now();
  launch();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<double> times_of(std::span<const Launch> launches, const std::function<void()>& alive) {
  std::vector<double> least(launches.size(), std::numeric_limits<double>::infinity());
  const Clock::time_point begin = Clock::now();
  for (int round = 0; round < max_rounds; ++round) {
    if (round >= min_rounds && std::chrono::duration<double>(Clock::now() - begin).count() > rounds_s) break;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      if (alive) alive();
      least[i] = std::min(least[i], seconds_of(static_cast<const CpuLaunch&>(*launches[i])));
    }
  }
  return least;
}

}  // namespace

Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                const CpuContext& context) {
  const PlanOptions& options = context.options;
  if (!options.pinned.empty()) {
    if (const Plan* pinned = find_plan(candidates, options.pinned); pinned != nullptr) return *pinned;
    std::string names;
    for (const Plan& plan : candidates) names += (names.empty() ? "" : ", ") + plan->implementation();
    refuse(call, fmt::format("pinned to {}; expected one of {}", options.pinned, names));
  }
  if (candidates.size() == 1 || options.deterministic) return candidates.front();
  if (const Plan* known = find_plan(candidates, options.remembered); known != nullptr)
    return chosen<CpuPlan>(*known, Choice::remembered);
  std::size_t workspace_bytes = 0;
  for (const Plan& plan : candidates) workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  const ScratchOperands scratch(tensors, workspace_bytes);
  if (!scratch) return chosen<CpuPlan>(candidates.front(), Choice::untimed);
  std::vector<Launch> launches;
  for (const Plan& plan : candidates)
    launches.push_back(static_cast<const CpuPlan&>(*plan).bind(scratch.tensors, scratch.workspace));
  const std::vector<double> times = times_of(launches, options.alive);
  const auto best = std::min_element(times.begin(), times.end());
  const bool changes = *best < max_relative_time * times.front();
  return chosen<CpuPlan>(candidates[changes ? static_cast<std::size_t>(best - times.begin()) : 0], Choice::timed);
}

}  // namespace gpubench::cpu

// Choosing among the ways that oneDNN has for one request, by trial runs while planning.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "reference/cpu/onednn.h"

namespace gpubench::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_trials = 5;
constexpr double enough_s = 0.02;        // of trials per candidate
constexpr double clearly_faster = 0.95;  // of the time of the candidate that would be kept otherwise

struct Freed {
  void operator()(void* data) const { std::free(data); }
};
using Scratch = std::unique_ptr<std::byte, Freed>;

// Small finite numbers in f32 and bf16 alike (0x3c3c: about 0.01), so that no trial runs into subnormals.
Scratch scratch(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t padded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  Scratch data(static_cast<std::byte*>(std::aligned_alloc(alignment, padded)));
  if (data != nullptr) std::memset(data.get(), 0x3c, padded);
  return data;
}

double seconds_of(const OneDnnLaunch& launch) {
  const Clock::time_point begin = Clock::now();
  launch();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double best_seconds(const OneDnnLaunch& launch) {
  launch();  // first touch, code generation
  double best = seconds_of(launch);
  double spent = best;
  for (int trial = 1; trial < most_trials && spent < enough_s; ++trial) {
    const double seconds = seconds_of(launch);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace

OneDnnWork fastest(const std::vector<OneDnnWork>& candidates, std::span<const std::int64_t> operand_bytes) {
  std::vector<OneDnnWork> worth_trying;
  std::size_t workspace_bytes = 0;
  for (const OneDnnWork& candidate : candidates) {
    if (candidate.is_reference_code()) continue;
    worth_trying.push_back(candidate);
    workspace_bytes = std::max(workspace_bytes, candidate.workspace_bytes());
  }
  if (worth_trying.empty()) return candidates.front();
  if (worth_trying.size() == 1) return worth_trying.front();

  std::vector<Scratch> owned;
  std::vector<std::byte*> operands;
  for (const std::int64_t bytes : operand_bytes) {
    owned.push_back(scratch(static_cast<std::size_t>(bytes)));
    operands.push_back(owned.back().get());
  }
  const Scratch workspace = scratch(workspace_bytes);
  const bool room = workspace != nullptr && std::find(operands.begin(), operands.end(), nullptr) == operands.end();
  if (!room) return worth_trying.front();

  const OneDnnWork* kept = nullptr;
  double kept_seconds = 0.0;
  for (const OneDnnWork& candidate : worth_trying) {
    const double seconds = best_seconds(candidate.bind(operands, workspace.get()));
    if (kept == nullptr || seconds < clearly_faster * kept_seconds) {
      kept = &candidate;
      kept_seconds = seconds;
    }
  }
  return *kept;
}

}  // namespace gpubench::cpu

// Choosing among candidates without a clock.
#include <algorithm>

#include "reference/cuda/autotune.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench::testing {
namespace {

std::vector<std::string>& candidates_seen() {
  static std::vector<std::string> names;
  return names;
}

}  // namespace

const std::vector<std::string>& last_candidates() { return candidates_seen(); }

}  // namespace gpubench::testing

namespace gpubench::cuda {

Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> /*tensors*/,
                const TuningData& /*data*/, const CudaContext& context) {
  const std::string& pinned = context.options.pinned;
  std::vector<std::string>& names = gpubench::testing::candidates_seen();
  names.clear();
  for (const Plan& plan : candidates) names.push_back(plan->implementation());
  if (candidates.empty()) refuse(call, "the library has no algorithm for it");
  if (pinned.empty()) return candidates.front();
  const auto found = std::find(names.begin(), names.end(), pinned);
  if (found == names.end()) refuse(call, "pinned to " + pinned + ", which is not among the candidates");
  return candidates[static_cast<std::size_t>(found - names.begin())];
}

}  // namespace gpubench::cuda

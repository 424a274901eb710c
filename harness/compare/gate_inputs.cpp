#include "harness/compare/gate_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

void add_all(std::vector<Difference>& to, const std::vector<Difference>& from) {
  for (const Difference& one : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const Difference& other) {
      return other.key == one.key && other.baseline == one.baseline && other.candidate == one.candidate;
    });
    if (!known) to.push_back(one);
  }
}

void require_known_keys(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                        const std::vector<std::string>& allowed) {
  std::set<std::string> known;
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) {
      for (const auto& [key, value] : invocation.setup.decisive) known.insert(key);
    }
  }
  for (const std::string& key : allowed) {
    if (known.contains(key)) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    throw UsageError(fmt::format("--allow-diff: no report knows '{}'; known: {}", visible(key), joined(names)));
  }
}

// Suites that have a change of their own that matters: a name that no report has would silently say nothing.
void require_known_suites(std::span<const Invocation> baseline, std::span<const Invocation> candidate, const Tau& tau) {
  std::set<std::string> known;
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) {
      for (const MeasuredCase& one : invocation.cases) known.insert(one.suite);
    }
  }
  for (const auto& [suite, share] : tau.by_suite) {
    if (known.contains(suite)) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    throw UsageError(
        fmt::format("--tau: no report has a suite '{}'; they have: {}", visible(suite), visible(joined(names))));
  }
}

void refuse_injected(std::span<const Invocation> baseline) {
  for (const Invocation& invocation : baseline) {
    if (!invocation.injected.empty())
      throw UsageError(fmt::format("--baseline: {} was measured with a fault on purpose, {}, and is no baseline",
                                   visible(invocation.source), visible(invocation.injected)));
  }
}

}  // namespace

void require_sound_inputs(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                          const GateOptions& options) {
  refuse_injected(baseline);
  refuse_repeats(baseline, "--baseline");
  refuse_repeats(candidate, "--candidate");
  require_known_keys(baseline, candidate, options.allowed_differences);
  require_known_suites(baseline, candidate, options.tau);
}

void compare_setups(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                    const GateOptions& options, GateResult& result) {
  const Setup& first = baseline.front().setup;
  std::vector<const Setup*> others;
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) others.push_back(&invocation.setup);
  }
  if (options.noise != nullptr) others.push_back(&options.noise->setup);
  for (const Setup* other : others) {
    for (const Difference& one : differences(first.decisive, other->decisive)) {
      const auto& allowed = options.allowed_differences;
      const bool may = std::find(allowed.begin(), allowed.end(), one.key) != allowed.end();
      add_all(may ? result.allowed : result.refused, {one});
    }
  }
  add_all(result.noted, differences(first.telling, candidate.front().setup.telling));
}

}  // namespace gpubench

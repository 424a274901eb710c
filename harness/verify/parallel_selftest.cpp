#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/error.h"
#include "harness/verify/parallel_faults.h"
#include "harness/verify/selftest.h"
#include "reference/ops/cross_entropy.h"

namespace gpubench {
namespace {

/// fp64 operations of a step, which the textbook runs hundreds of times.
constexpr double small_step_flop = 4e6;
/// Least extent that is halved; heads and layers are fewer.
constexpr std::int64_t large_extent = 16;

struct Sharing {
  int dp = 1;
  RankLayout layout;
};

std::vector<Sharing> sharings() {
  return {{1, {2, false}},  {1, {2, true}}, {2, {}},        {2, {2, true}},
          {1, {.fsdp = 2}}, {1, {.ep = 2}}, {1, {.cp = 2}}, {1, {.cp = 2, .passes_keys = true}},
          {1, {.pp = 2}}};
}

Case shared_case(Case c, const Sharing& sharing) {
  c = c.on_one_rank();
  for (std::string& mode : modes_of(sharing.layout)) c.modes.push_back(std::move(mode));
  c.ranks = sharing.dp * sharing.layout.ranks();
  return c;
}

/// Halves large extents until the step is small. Empty if no such step can be shared.
std::optional<Case> small_case(const Workload& workload, Case c, const Sharing& sharing) {
  while (true) {
    try {
      if (cost_of(workload.build(shared_case(c, sharing))).flop <= small_step_flop) return shared_case(c, sharing);
    } catch (const ProgramError&) {
      return std::nullopt;
    }
    bool any = false;
    for (auto& [axis, extent] : c.dims) {
      if (extent < large_extent || extent % 2 != 0) continue;
      extent /= 2;
      any = true;
    }
    if (!any) return std::nullopt;
  }
}

struct Step {
  const Workload* workload = nullptr;
  Case c;
  bool is_extra = false;  ///< only for classes that no other step has a place for
};

/// The cases whose ranks can share their tensors, in f32, with the other modes of their workloads (masked labels) of
/// all tiers.
std::vector<Step> steps_of(std::span<const PlannedCase> cases) {
  std::vector<Step> steps, extra;
  std::set<std::vector<std::string>> modes_of_workload;
  for (const PlannedCase& planned : cases) {
    const Workload& workload = *planned.workload;
    if (!workload.info().shares_tensors || planned.c.recipe != "f32") continue;
    steps.push_back({&workload, planned.c});
    const Grid grid = workload.grid();
    for (const Point& point : grid.points) {
      std::vector<std::string> key{workload.info().name};
      key.insert(key.end(), point.modes.begin(), point.modes.end());
      if (point.modes.empty() || !modes_of_workload.insert(std::move(key)).second) continue;
      extra.push_back({&workload, planned.c, true});
      extra.back().c.dims = point.dims;
      extra.back().c.modes = point.modes;
    }
  }
  steps.insert(steps.end(), extra.begin(), extra.end());
  return steps;
}

}  // namespace

std::vector<FaultRow> parallel_selftest(std::span<const PlannedCase> cases, const SelftestEffort& effort,
                                        std::uint64_t seed, std::vector<std::string>& alarms,
                                        const std::function<void(const std::string& now)>& progress,
                                        const StopFlag& stop) {
  std::vector<FaultRow> rows;
  for (const ParallelFaultClass& one : parallel_fault_classes())
    rows.push_back(
        {.name = std::string(one.name), .where = std::string(one.where), .rule = std::string(name(one.stage))});
  std::set<std::string> seen;  // small steps
  for (const Step& step : steps_of(cases)) {
    const auto is_selected = [&](const FaultRow& row) { return !step.is_extra || row.faults == 0; };
    for (const Sharing& sharing : sharings()) {
      if (std::ranges::none_of(rows, is_selected)) break;
      const std::optional<Case> c = small_case(*step.workload, step.c, sharing);
      if (stop != 0 || !c || !seen.insert(c->id()).second) continue;
      const std::optional<Program> one = step_of_one_rank(*step.workload, *c);
      if (!one) continue;
      progress(fmt::format("steps that ranks share: {}", c->id()));
      const std::string key = c->id_without_ranks();
      const Program many = step.workload->build(*c);
      const auto is_loss = [](const OpCall& call) { return makes_cross_entropy(call.kind); };
      if (std::ranges::none_of(many.ops(), is_loss)) continue;  // a block; the classes need a loss
      const StepResult alone = step_result(*one, key, seed);
      if (const auto off = divergence(alone, step_result(many, key, seed), many))
        alarms.push_back(fmt::format("{} does not train as one rank: {}", c->id(), off->text));
      for (std::size_t i = 0; i < rows.size() && stop == 0; ++i) {
        if (!is_selected(rows[i])) continue;
        const ParallelFaultClass& one_class = parallel_fault_classes()[i];
        for (const FaultyStep& faulty : faulty_steps(many, i, effort.places_per_fault)) {
          const auto off = divergence(alone, step_result(faulty.program, key, seed, many), many);
          ++rows[i].faults;
          if (off && off->stage == one_class.stage &&
              std::ranges::find(one_class.kinds, off->kind) != one_class.kinds.end()) {
            ++rows[i].caught;
          } else {
            rows[i].escaped.push_back(
                fmt::format("at {} of {}: {}", faulty.place, c->id(), off ? off->text : "not found"));
          }
        }
      }
    }
  }
  return rows;
}

}  // namespace gpubench

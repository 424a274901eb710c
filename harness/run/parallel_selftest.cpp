#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/error.h"
#include "harness/parity/parallel_faults.h"
#include "harness/run/selftest.h"
#include "reference/ops/cross_entropy.h"

namespace gpubench {
namespace {

/// fp64 work of a step that the textbook runs hundreds of times.
constexpr double small_step_flop = 4e6;
/// Extents from here on can be halved: not heads and layers, which are few.
constexpr std::int64_t large_extent = 16;

struct Sharing {
  int dp = 1;
  RankLayout layout;
};

/// Every axis alone, and the products of several.
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

/// The same step with its large extents halved until it is small. None where no such step can be shared.
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
  for (const PlannedCase& planned : cases) {
    if (!planned.workload->info().shares_tensors || planned.c.recipe != "f32") continue;
    for (const Sharing& sharing : sharings()) {
      const std::optional<Case> c = small_case(*planned.workload, planned.c, sharing);
      if (stop != 0 || !c || !seen.insert(c->id()).second) continue;
      const std::optional<Program> one = step_of_one_rank(*planned.workload, *c);
      if (!one) continue;
      progress(fmt::format("steps that ranks share: {}", c->id()));
      const std::string key = c->id_without_ranks();
      const Program many = planned.workload->build(*c);
      const auto is_loss = [](const OpCall& call) { return makes_cross_entropy(call.kind); };
      if (std::ranges::none_of(many.ops(), is_loss)) continue;  // of a block: the classes say what a loss shows
      const StepResult alone = step_result(*one, key, seed);
      if (const auto off = divergence(alone, step_result(many, key, seed), many))
        alarms.push_back(fmt::format("{} does not train as one rank: {}", c->id(), off->text));
      for (std::size_t i = 0; i < rows.size() && stop == 0; ++i) {
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

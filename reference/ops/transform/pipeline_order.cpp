#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "reference/ops/transform/pipeline.h"

namespace gpubench {
namespace {

/// A stage's forwards and backwards in order. Rounds of as many micro-batches as stages pass part by part. After enough
/// forwards for a timely first backward, the two alternate.
struct StageOrder {
  std::vector<PipelineUnit> forwards, backwards;
  std::size_t forward = 0, backward = 0;
  std::size_t ahead = 0;  ///< forwards before the first backward, minus one
  int free_at = 0;

  StageOrder(const PipelineParallel& options, int stage, int micro_batches) {
    const int stages = options.stages, behind = stages - 1 - stage;
    const int warm_up = options.parts == 1 ? behind : 2 * behind + (options.parts - 1) * stages;
    ahead = static_cast<std::size_t>(warm_up);
    for (int part = stage; part < stages * options.parts; part += stages) {
      for (int micro = 0; micro < micro_batches; ++micro) {
        forwards.push_back({micro, part, false});
        backwards.push_back({micro, part, true});
      }
    }
    const auto round = [&](const PipelineUnit& unit) {
      return std::tuple(unit.micro / stages, unit.backward ? -unit.part : unit.part, unit.micro % stages);
    };
    std::ranges::sort(forwards, {}, round);
    std::ranges::sort(backwards, {}, round);
  }

  /// Candidates for the next unit. `any`: either direction, if the due one cannot come.
  [[nodiscard]] std::vector<PipelineUnit> next(bool any) const {
    std::vector<PipelineUnit> units;
    const bool is_forward = forward < forwards.size() && forward <= backward + ahead;
    if (forward < forwards.size() && (is_forward || any)) units.push_back(forwards[forward]);
    if (backward < backwards.size() && (!is_forward || any)) units.push_back(backwards[backward]);
    return units;
  }
};

class StagesAtWork {
 public:
  StagesAtWork(const PipelineParallel& options, int micro_batches) : last_part_(options.stages * options.parts - 1) {
    for (int stage = 0; stage < options.stages; ++stage) stages_.emplace_back(options, stage, micro_batches);
  }

  [[nodiscard]] std::vector<PipelineUnit> run() && {
    std::vector<PipelineUnit> order;
    while (true) {
      std::optional<Candidate> next = first(false);
      if (!next) next = first(true);  // micro-batches are not a whole number of rounds
      if (!next) return order;
      StageOrder& stage = stages_[next->stage];
      ++(next->unit.backward ? stage.backward : stage.forward);
      ends_[next->unit] = stage.free_at = next->start + (next->unit.backward ? 2 : 1);
      order.push_back(next->unit);
    }
  }

 private:
  struct Candidate {
    int start = 0;
    std::size_t stage = 0;
    PipelineUnit unit;
  };

  [[nodiscard]] std::optional<Candidate> first(bool any) const {
    std::optional<Candidate> found;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      for (const PipelineUnit& unit : stages_[stage].next(any)) {
        const std::optional<int> there = ready(unit);
        if (!there) continue;
        const int start = std::max(*there, stages_[stage].free_at);
        if (!found || start < found->start) found = Candidate{start, stage, unit};
      }
    }
    return found;
  }

  /// When a unit's inputs are available; none if they have not begun.
  [[nodiscard]] std::optional<int> ready(const PipelineUnit& unit) const {
    std::vector<PipelineUnit> needed;
    if (!unit.backward && unit.part > 0) needed.push_back({unit.micro, unit.part - 1, false});
    if (unit.backward) needed.push_back({unit.micro, unit.part, false});
    if (unit.backward && unit.part < last_part_) needed.push_back({unit.micro, unit.part + 1, true});
    int latest = 0;
    for (const PipelineUnit& each : needed) {
      const auto found = ends_.find(each);
      if (found == ends_.end()) return std::nullopt;
      latest = std::max(latest, found->second);
    }
    return latest;
  }

  int last_part_;
  std::vector<StageOrder> stages_;
  std::map<PipelineUnit, int> ends_;
};

}  // namespace

std::vector<PipelineUnit> pipeline_order(const PipelineParallel& options, int micro_batches) {
  return StagesAtWork(options, micro_batches).run();
}

}  // namespace gpubench

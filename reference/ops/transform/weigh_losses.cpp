#include "reference/ops/transform/batches.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/collective.h"
#include "reference/ops/cross_entropy.h"

namespace gpubench {
namespace {

bool is_weighed(const OpCall& call) {
  constexpr std::array kinds{cross_entropy_forward_kind, cross_entropy_combine_kind, cross_entropy_backward_kind,
                             cross_entropy_forward_backward_kind};
  return std::ranges::find(kinds, call.kind) != kinds.end() && call.attributes.as<CrossEntropy>().ignores;
}

/// A rank's labels: a source, and how many micro-batches it is cut into.
struct Labels {
  ValueId batch;
  int parts = 1;
};

std::map<int, Labels> labels_of(const Program& step) {
  std::map<int, Labels> all;
  for (const OpCall& call : step.ops()) {
    if (!is_weighed(call)) continue;
    const ValueId id = call.input("labels"), batch = step.values_in(step.value(id).storage).front();
    const TensorSpec& part = step.spec(id);
    const Labels labels{batch, static_cast<int>(step.spec(batch).shape.elements() / part.shape.elements())};
    const auto [known, is_new] = all.try_emplace(part.placement.rank, labels);
    if (!step.value(batch).source || known->second.batch != batch || known->second.parts != labels.parts ||
        labels.parts != all.begin()->second.parts)
      throw ProgramError("weigh_losses: '" + part.name + "' of op '" + call.label +
                         "'; expected equal parts of one source, as many on every rank");
  }
  return all;
}

/// The ranks that have parts of the same batch.
RankGroup parts_of(const Program& step, ValueId labels) {
  const Placement& placement = step.spec(labels).placement;
  std::vector<int> along;
  for (const AxisSpread& spread : placement.spread) {
    if (spread.kind == AxisSpread::Kind::sharded && spread.mesh_axis >= 0) along.push_back(spread.mesh_axis);
  }
  return step.mesh().group(placement.rank, along);
}

/// The average number of counted labels per part, on each rank.
std::map<int, ValueId> append_counts(Program& program, const std::map<int, Labels>& labels, int ignore_index,
                                     const Math& math, DType wide) {
  std::map<int, ValueId> counts;
  for (const auto& [rank, of_rank] : labels) {
    const std::string name = std::string(program.spec(of_rank.batch).global_name()) + ".count";
    counts.emplace(
        rank, count_labels(program, {ignore_index, of_rank.parts}, math,
                           program.unique_name(name_on_rank(name, rank, program.mesh().ranks())), of_rank.batch, wide));
  }
  for (const auto& [rank, of_rank] : labels) {
    const RankGroup group = parts_of(program, of_rank.batch);
    if (group.size() == 1 || group[0] != rank) continue;
    std::vector<ValueId> own;
    for (const int member : group.members()) own.push_back(counts.at(member));
    const std::vector<ValueId> mean = all_reduce(program, {group.size(), Reduction::average}, math,
                                                 program.unique_name("labels.count.all_reduce"), own, false, group);
    for (int place = 0; place < group.size(); ++place) counts.at(group[place]) = mean[static_cast<std::size_t>(place)];
  }
  return counts;
}

}  // namespace

Program weigh_losses(const Program& step, const Math& math, DType wide) {
  const std::map<int, Labels> labels = labels_of(step);
  if (labels.empty()) return step;
  const Labels& first = labels.begin()->second;
  if (first.parts == 1 && parts_of(step, first.batch).size() == 1) return step;
  const auto loss = std::ranges::find_if(step.ops(), is_weighed);
  Program result(step.mesh());
  (void)copy_values(step, result, [](TensorSpec&) {});
  std::map<int, ValueId> counts;
  for (const OpCall& of_step : step.ops()) {
    result.begin(of_step.phase);
    if (of_step.phase == Phase::timed && counts.empty())
      counts = append_counts(result, labels, loss->attributes.as<CrossEntropy>().ignore_index, math, wide);
    OpCall call = of_step;
    if (is_weighed(call)) {
      CrossEntropy attributes = call.attributes.as<CrossEntropy>();
      attributes.given_count = true;
      call.attributes = attributes;
      call.inputs.push_back(counts.at(step.spec(call.input("labels")).placement.rank));
    }
    result.append(std::move(call));
  }
  result.begin(Phase::timed);
  return result;
}

}  // namespace gpubench

#include "reference/ops/transform/batches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/dropout.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {
namespace {

/// Gradients that are reduced together after op `after`.
struct Bucket {
  std::vector<ValueId> gradients;
  int after = -1;
};

std::vector<Bucket> buckets_of(const Program& step, std::vector<ValueId> order, std::int64_t bytes) {
  std::stable_sort(order.begin(), order.end(),
                   [&](ValueId a, ValueId b) { return *step.value(a).producer < *step.value(b).producer; });
  std::vector<Bucket> buckets;
  std::int64_t filled = bytes;  // makes the first gradient open a bucket
  for (const ValueId id : order) {
    if (filled >= bytes) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().gradients.push_back(id);
    buckets.back().after = *step.value(id).producer;
    filled += step.spec(id).bytes();
  }
  return buckets;
}

/// By rank of the step, which reduces gradients with its counterparts in other replicas.
std::map<int, std::vector<Bucket>> buckets_by_rank(const Program& step, std::span<const ValueId> gradients,
                                                   std::int64_t bytes) {
  std::map<int, std::vector<ValueId>> of_rank;
  for (const ValueId id : gradients) {
    if (!step.value(id).producer)
      throw ProgramError("data_parallel: no op produces gradient '" + step.spec(id).name + "'");
    of_rank[step.spec(id).placement.rank].push_back(id);
  }
  std::map<int, std::vector<Bucket>> buckets;
  for (auto& [rank, ids] : of_rank) buckets[rank] = buckets_of(step, std::move(ids), bytes);
  return buckets;
}

/// Empty: all ranks.
std::vector<int> held_of(const Program& step, const DataParallel& options) {
  const int each = step.mesh().ranks();
  for (const int rank : options.held) {
    if (step.holds(rank % each)) continue;
    throw ProgramError("data_parallel: the result cannot hold rank " + std::to_string(rank) +
                       ": the step lacks its rank " + std::to_string(rank % each));
  }
  if (!options.held.empty()) return options.held;
  std::vector<int> held;
  for (int rank = 0; rank < options.ranks * each; ++rank) {
    if (step.holds(rank % each)) held.push_back(rank);
  }
  if (held.size() == static_cast<std::size_t>(options.ranks * each)) held.clear();
  return held;
}

/// Rank r of the step's `each` is rank d each + r in replica d.
class Replicas {
 public:
  Replicas(const Program& step, const DataParallel& options)
      : step_(step),
        options_(options),
        dp_(step, options.axis, options.ranks),
        program_(dp_.mesh(), held_of(step, options)) {
    for (int replica = 0; replica < options.ranks; ++replica) {
      bool any = false;
      for (int rank = 0; rank < dp_.each() && !any; ++rank) any = program_.holds(dp_.rank(replica, rank));
      if (any) add_replica(replica);
    }
  }

  void append(const OpCall& call) {
    for (const ValueId input : call.inputs) expect_no_alias(call, input);
    for (auto& [replica, now] : now_) append(call, replica, now);
  }

  void reduce(const Bucket& bucket, int rank, int number) {
    std::vector<ValueId> all;
    for (const auto& [replica, now] : now_) {
      if (!program_.holds(dp_.rank(replica, rank))) continue;
      for (const ValueId id : bucket.gradients) all.push_back(now[at(id)]);
    }
    for (const ValueId id : bucket.gradients) reduced_[step_.value(id).storage].push_back(id);
    if (all.empty()) return;
    program_.begin(Phase::timed);
    const std::string label = name_on_rank("gradients.bucket" + std::to_string(number), rank, dp_.each());
    const std::vector<ValueId> reduced = all_reduce(program_, {options_.ranks, options_.reduction}, options_.math,
                                                    program_.unique_name(label), all, true, dp_.across(rank));
    auto next = reduced.begin();
    for (auto& [replica, now] : now_) {
      if (!program_.holds(dp_.rank(replica, rank))) continue;
      for (const ValueId id : bucket.gradients) now[at(id)] = *next++;
    }
  }

  [[nodiscard]] PartitionedStep take(std::span<const ValueId> gradients) && {
    program_.begin(Phase::timed);
    std::vector<ValueId> of_all;
    for (const auto& [replica, now] : made_) {
      for (const ValueId id : gradients) of_all.push_back(now[at(id)]);
    }
    return {std::move(program_), std::move(of_all)};
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  void add_replica(int replica) {
    std::vector<bool> drop;
    for (const Value& value : step_.values())
      drop.push_back(!program_.holds(dp_.rank(replica, value.spec.placement.rank)));
    now_[replica] = copy_values(
        step_, program_, [&](TensorSpec& spec) { place(spec, replica); }, drop);
    made_[replica] = now_[replica];
  }

  void place(TensorSpec& spec, int replica) {
    dp_.move(spec, replica);
    spec.name = program_.unique_name(spec.name);
    std::vector<AxisSpread>& spreads = spec.placement.spread;
    for (AxisSpread& spread : spreads) {
      if (spread.mesh_axis != AxisSpread::no_axis_yet) continue;
      spread.mesh_axis = 0;
      spread.part = replica;
      spread.parts = options_.ranks;
    }
  }

  void append(const OpCall& call, int replica, const std::vector<ValueId>& now) {
    OpCall mine = call;
    for (std::vector<ValueId>* list : {&mine.inputs, &mine.outputs}) {
      for (ValueId& id : *list) id = now[at(id)];
      std::erase_if(*list, [](ValueId id) { return id.index < 0; });
    }
    if (const std::optional<int> rank = rank_of(step_, call)) {
      if (!program_.holds(dp_.rank(replica, *rank))) return;
      mine.label = dp_.label(call.label, *rank, replica);
    } else {
      std::vector<int> held;
      mine.group = dp_.group(call.group, replica);
      for (const int member : mine.group.members()) {
        if (program_.holds(member)) held.push_back(member);
      }
      if (held.empty()) return;
      mine.held = RankGroup(std::move(held));
      mine.label = dp_.label(call.label, replica);
    }
    program_.begin(call.phase);
    program_.append(std::move(mine));
  }

  void expect_no_alias(const OpCall& call, ValueId input) const {
    const auto beside = reduced_.find(step_.value(input).storage);
    if (beside == reduced_.end()) return;
    ValueId made = input;  // the produced value that `input` is a view of
    while (!step_.value(made).producer && step_.value(made).part_of) made = *step_.value(made).part_of;
    const std::optional<int> written = step_.value(made).producer;
    for (const ValueId gradient : beside->second) {
      const bool later = written && *written > *step_.value(gradient).producer;  // made from the reduced gradient
      if (gradient == input || later || !step_.overlaps(gradient, input)) continue;
      throw ProgramError("data_parallel: op '" + call.label + "' reads '" + step_.spec(input).name +
                         "' after gradient '" + step_.spec(gradient).name + "' in the same storage was reduced");
    }
  }

  const Program& step_;
  const DataParallel& options_;
  OuterAxis dp_;
  Program program_;
  std::map<int, std::vector<ValueId>> now_;   // by replica: the latest version of each value of the step
  std::map<int, std::vector<ValueId>> made_;  // by replica: as its op makes it
  std::map<StorageId, std::vector<ValueId>> reduced_;
};

}  // namespace

Mesh OuterAxis::mesh() const {
  std::vector<MeshAxis> axes{{name_, places_}};
  axes.insert(axes.end(), step_.mesh().axes().begin(), step_.mesh().axes().end());
  return Mesh(std::move(axes));
}

RankGroup OuterAxis::group(const RankGroup& of_step, int place) const {
  std::vector<int> members;
  for (const int member : of_step.members()) members.push_back(rank(place, member));
  return RankGroup(std::move(members));
}

RankGroup OuterAxis::across(int of_step) const {
  std::vector<int> members;
  for (int place = 0; place < places_; ++place) members.push_back(rank(place, of_step));
  return RankGroup(std::move(members));
}

std::string OuterAxis::label(std::string_view of_step, int rank_of_step, int place, std::string_view more) const {
  const std::string suffix = name_on_rank("", rank_of_step, each_);
  if (of_step.ends_with(suffix)) of_step.remove_suffix(suffix.size());
  return name_on_rank(std::string(of_step) + std::string(more), rank(place, rank_of_step), ranks());
}

std::string OuterAxis::label(std::string_view of_step, int place) const {
  return std::string(of_step) + "@" + name_ + std::to_string(place);
}

void OuterAxis::move(TensorSpec& spec, int place) const {
  const int there = rank(place, spec.placement.rank);
  spec.name = name_on_rank(spec.global_name(), there, ranks());
  spec.placement.rank = there;
  spec.placement.ranks = ranks();
  for (AxisSpread& spread : spec.placement.spread) {
    if (spread.mesh_axis != AxisSpread::no_axis_yet) ++spread.mesh_axis;
  }
}

Program data_parallel(const Program& step, const DataParallel& options, std::span<const ValueId> gradients) {
  return replicated_step(step, options, gradients).program;
}

PartitionedStep replicated_step(const Program& step, const DataParallel& options, std::span<const ValueId> gradients) {
  if (options.ranks == 1) return {step, {gradients.begin(), gradients.end()}};
  (void)mask_offsets(step, options.axis == "cp" ? "context_parallel" : "data_parallel");
  const std::map<int, std::vector<Bucket>> buckets = buckets_by_rank(step, gradients, options.bucket_bytes);
  Replicas replicas(step, options);
  std::map<int, std::size_t> next;
  for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
    replicas.append(step.op(index));
    for (const auto& [rank, own] : buckets) {
      for (std::size_t& number = next[rank]; number < own.size() && own[number].after == index; ++number)
        replicas.reduce(own[number], rank, static_cast<int>(number));
    }
  }
  return std::move(replicas).take(gradients);
}

}  // namespace gpubench

#include "reference/ops/transform/data_parallel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/transform/copy_values.h"

namespace gpubench {
namespace {

/// Gradients that are reduced together, once op `after` has run.
struct Bucket {
  std::vector<ValueId> gradients;
  int after = -1;
};

std::vector<Bucket> buckets_of(const Program& step, std::span<const ValueId> gradients, std::int64_t bytes) {
  std::vector<ValueId> order(gradients.begin(), gradients.end());
  for (const ValueId id : order) {
    if (!step.value(id).producer)
      throw ProgramError("data_parallel: no op produces gradient '" + step.spec(id).name + "'");
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](ValueId a, ValueId b) { return *step.value(a).producer < *step.value(b).producer; });
  std::vector<Bucket> buckets;
  std::int64_t filled = bytes;  // so that the first gradient opens a bucket
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

/// The step on all ranks, while it is put together.
class Replicas {
 public:
  Replicas(const Program& step, const DataParallel& options) : step_(step), options_(options) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      now_.push_back(copy_values(step, program_, [&](TensorSpec& spec) {
        spec.name = name_on_rank(spec.name, rank, options.ranks);
        spec.placement.rank = rank;
        spec.placement.ranks = options.ranks;
      }));
    }
  }

  void append(const OpCall& call) {
    for (const ValueId input : call.inputs) expect_not_under_another_name(call, input);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      OpCall mine = call;
      mine.label = name_on_rank(call.label, rank, options_.ranks);
      for (std::vector<ValueId>* list : {&mine.inputs, &mine.outputs}) {
        for (ValueId& id : *list) id = of(rank, id);
      }
      program_.begin(call.phase);
      program_.append(std::move(mine));
    }
  }

  void reduce(const Bucket& bucket, int number) {
    std::vector<ValueId> all;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      for (const ValueId id : bucket.gradients) all.push_back(of(rank, id));
    }
    program_.begin(Phase::timed);
    const std::vector<ValueId> reduced =
        all_reduce(program_, {options_.ranks, options_.reduction}, options_.math,
                   program_.unique_name("gradients.bucket" + std::to_string(number)), all, true);
    for (std::size_t i = 0; i < reduced.size(); ++i) {
      const ValueId id = bucket.gradients[i % bucket.gradients.size()];
      of(static_cast<int>(i / bucket.gradients.size()), id) = reduced[i];
    }
    for (const ValueId id : bucket.gradients) reduced_[step_.value(id).storage].push_back(id);
  }

  [[nodiscard]] Program take() && {
    program_.begin(Phase::timed);
    return std::move(program_);
  }

 private:
  ValueId& of(int rank, ValueId id) { return now_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(id.index)]; }

  void expect_not_under_another_name(const OpCall& call, ValueId input) const {
    const auto beside = reduced_.find(step_.value(input).storage);
    if (beside == reduced_.end()) return;
    for (const ValueId gradient : beside->second) {
      const std::optional<int> written = step_.value(input).producer;
      const bool later = written && *written > *step_.value(gradient).producer;  // made from the reduced gradient
      if (gradient == input || later || !step_.overlaps(gradient, input)) continue;
      throw ProgramError("data_parallel: op '" + call.label + "' reads '" + step_.spec(input).name +
                         "' after gradient '" + step_.spec(gradient).name + "' in the same storage was reduced");
    }
  }

  const Program& step_;
  const DataParallel& options_;
  Program program_;
  std::vector<std::vector<ValueId>> now_;  // of each rank: the latest version of each value of the step
  std::map<StorageId, std::vector<ValueId>> reduced_;
};

}  // namespace

Program data_parallel(const Program& step, const DataParallel& options, std::span<const ValueId> gradients) {
  if (options.ranks == 1) return step;
  const std::vector<Bucket> buckets = buckets_of(step, gradients, options.bucket_bytes);
  Replicas replicas(step, options);
  std::size_t next = 0;
  for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
    replicas.append(step.op(index));
    for (; next < buckets.size() && buckets[next].after == index; ++next)
      replicas.reduce(buckets[next], static_cast<int>(next));
  }
  return std::move(replicas).take();
}

}  // namespace gpubench

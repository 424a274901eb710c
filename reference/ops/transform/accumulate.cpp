#include "reference/ops/transform/batches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/core/error.h"
#include "reference/ops/dropout.h"
#include "reference/ops/pointwise.h"

namespace gpubench {
namespace {

class Accumulating {
 public:
  Accumulating(const Program& step, const Accumulation& options, std::span<const ValueId> gradients)
      : step_(step), options_(options), result_(step.mesh()), now_(step.values().size()) {
    for (const ValueId id : gradients) {
      if (!step.value(id).producer)
        throw ProgramError("accumulate: no op produces gradient '" + step.spec(id).name + "'");
      sums_[id] = {};
    }
    find_once();
  }

  [[nodiscard]] Accumulated take(std::span<const ValueId> gradients) && {
    for (int micro = 0; micro < options_.micro_batches; ++micro) {
      for (int index = 0; index < static_cast<int>(now_.size()); ++index) begin_micro_batch({index}, micro);
      for (int index = 0; index < static_cast<int>(step_.ops().size()); ++index) {
        if (!once_[static_cast<std::size_t>(index)]) append(index, micro);
      }
    }
    for (const auto& [gradient, sum] : sums_) now_[at(gradient)] = sum;
    for (int index = 0; index < static_cast<int>(now_.size()); ++index) {
      if (made({index}) == Made::once) now_[at({index})] = copy({index}, step_.spec({index}).name);
    }
    for (int index = 0; index < static_cast<int>(step_.ops().size()); ++index) {
      if (once_[static_cast<std::size_t>(index)]) append(step_.op(index));
    }
    result_.begin(Phase::timed);
    Accumulated done{std::move(result_), {}};
    for (const ValueId id : gradients) done.gradients.push_back(sums_.at(id));
    return done;
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  void find_once() {
    std::map<StorageId, bool> final;
    for (int index = 0; index < static_cast<int>(step_.ops().size()); ++index) {
      const OpCall& op = step_.op(index);
      const auto is_final = [&](ValueId id) { return final.contains(step_.value(id).storage); };
      once_.push_back(std::ranges::any_of(op.inputs, is_final));
      for (const ValueId id : op.inputs) {
        if (is_final(id)) expect_no_alias(op, id);
      }
      for (const ValueId id : op.outputs) {
        if (sums_.contains(id) && once_.back())
          throw ProgramError("accumulate: gradient '" + step_.spec(id).name + "' is made of another gradient");
        if (once_.back() || sums_.contains(id)) final[step_.value(id).storage] = true;
      }
    }
  }

  void expect_no_alias(const OpCall& op, ValueId input) const {
    const std::optional<int> producer = step_.value(input).producer;
    if (sums_.contains(input) || (producer && once_[static_cast<std::size_t>(*producer)])) return;
    for (const auto& [gradient, sum] : sums_) {
      if (!step_.overlaps(gradient, input)) continue;
      throw ProgramError("accumulate: op '" + op.label + "' reads '" + step_.spec(input).name +
                         "', which is part of '" + step_.spec(gradient).name + "'");
    }
  }

  enum class Made { before, in_each, once };  // by sources and set-up; per micro-batch; after all of them

  [[nodiscard]] Made made(ValueId id) const {
    const Value& value = step_.value(id);
    if (value.producer) {
      if (step_.op(*value.producer).phase == Phase::setup) return Made::before;
      return once_[static_cast<std::size_t>(*value.producer)] ? Made::once : Made::in_each;
    }
    if (value.part_of && !value.updates) return made(*value.part_of);
    for (const ValueId part : step_.values_in(value.storage)) {
      if (!value.source && step_.value(part).producer) return made(part);
    }
    return Made::before;
  }
  [[nodiscard]] bool is_batch(ValueId id) const {
    const Value& value = step_.value(id);
    return value.source && !value.part_of &&
           std::ranges::any_of(value.spec.placement.spread, [](const AxisSpread& spread) {
             return spread.mesh_axis == AxisSpread::no_axis_yet && spread.tensor_axis == 0;
           });
  }

  [[nodiscard]] static std::string name_in(const std::string& name, int micro) {
    return name + ".micro" + std::to_string(micro);
  }

  // The value of micro-batch `micro`; none for values made once.
  void begin_micro_batch(ValueId id, int micro) {
    const Value& value = step_.value(id);
    if (is_batch(id)) {
      now_[at(id)] = part_of_batch(id, micro);
    } else if (made(id) == Made::in_each || (value.part_of && is_batch(*value.part_of))) {
      now_[at(id)] = copy(id, name_in(value.spec.name, micro));
      if (value.updates) left_[oldest(id)] = now_[at(id)];
    } else if (made(id) == Made::before) {
      if (micro == 0) now_[at(id)] = copy(id, value.spec.name);
      if (const auto found = left_.find(id); found != left_.end()) now_[at(id)] = found->second;
    }
  }

  [[nodiscard]] ValueId oldest(ValueId id) const {
    while (step_.value(id).updates) id = *step_.value(id).updates;
    return id;
  }

  ValueId copy(ValueId id, const std::string& name) {
    const Value& value = step_.value(id);
    TensorSpec spec = value.spec;
    spec.name = name;
    if (value.updates) return result_.update(now_[at(*value.updates)], name);
    if (value.part_of) {
      const std::int64_t distance = value.offset_bytes - step_.value(*value.part_of).offset_bytes;
      return result_.part(now_[at(*value.part_of)], std::move(spec), distance * 8 / bits_of(spec.dtype));
    }
    return value.source ? result_.add(std::move(spec)) : result_.reserve(std::move(spec));
  }

  ValueId part_of_batch(ValueId id, int micro) {
    TensorSpec spec = step_.spec(id);
    if (micro == 0) {
      if (!spec.layout.is_row_major(spec.shape))
        throw ProgramError("accumulate: batch '" + spec.to_string() + "' is not row-major");
      std::vector<std::int64_t> extents(spec.shape.extents().begin(), spec.shape.extents().end());
      extents[0] *= options_.micro_batches;
      TensorSpec all = tensor(spec.name, spec.dtype, Shape(std::move(extents)), spec.role, spec.fill);
      all.placement = spec.placement;
      batches_[id] = result_.add(std::move(all));
    }
    spec.name = name_in(spec.name, micro);
    spec.placement.spread.clear();
    const std::int64_t elements = spec.shape.elements();
    return result_.part(batches_.at(id), std::move(spec), micro * elements);
  }

  void append(int index, int micro) {
    const OpCall& op = step_.op(index);
    if (op.phase == Phase::setup && micro > 0) return;
    OpCall mine = op;
    if (op.phase == Phase::timed) mine.label = name_in(op.label, micro);
    append(std::move(mine));
    for (const ValueId id : op.outputs) {
      if (sums_.contains(id)) add_up(id, op.label, micro);
    }
  }

  void append(OpCall op) {
    for (std::vector<ValueId>* list : {&op.inputs, &op.outputs}) {
      for (ValueId& id : *list) id = now_[at(id)];
    }
    result_.begin(op.phase);
    result_.append(std::move(op));
  }

  // sum = factor gradient, then sum' = sum + factor gradient in place. A gradient of another type is cast first:
  // backends have pointwise ops of one type, and casts to a wider sum are exact.
  void add_up(ValueId id, const std::string& label, int micro) {
    const double factor = options_.reduction == Reduction::average ? 1.0 / options_.micro_batches : 1.0;
    ValueId gradient = now_[at(id)];
    ValueId& sum = sums_.at(id);
    const DType type = step_.spec(id).dtype == DType::f64 ? DType::f64 : options_.sums;
    if (result_.spec(gradient).dtype != type)
      gradient = cast(result_, type, result_.unique_name(name_in(label + ".wide", micro)), gradient);
    if (micro == 0) {
      sum = scale(result_, {factor}, options_.math, result_.unique_name(label + ".sum"), gradient);
      return;
    }
    const std::string name = result_.unique_name(name_in(label + ".sum", micro));
    const ValueId updated = result_.update(sum, name);
    result_.append({triad_kind, Triad{factor}, options_.math, {sum, gradient}, {updated}, name});
    sum = updated;
  }

  const Program& step_;
  const Accumulation& options_;
  Program result_;
  std::vector<bool> once_;              // by op: comes after all micro-batches
  std::vector<ValueId> now_;            // by value of the step: its current counterpart
  std::map<ValueId, ValueId> sums_;     // by gradient: its sum so far
  std::map<ValueId, ValueId> left_;     // by value that a micro-batch updates: the last version
  std::map<ValueId, ValueId> batches_;  // by source: that of all micro-batches
};

}  // namespace

Accumulated accumulate(const Program& step, const Accumulation& options, std::span<const ValueId> gradients) {
  if (options.micro_batches == 1) return {step, {gradients.begin(), gradients.end()}};
  (void)mask_offsets(step, "accumulate");
  return Accumulating(step, options, gradients).take(gradients);
}

}  // namespace gpubench

#include "reference/ops/transform/checkpoint.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/step_parts.h"
#include "reference/ops/attention.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

/// What can be repeated. Segments are numbered; stretches of the forward separated by a backward (of micro-batches) are
/// separate segments, even with equal names.
struct Segments {
  std::vector<bool> is_backward;  ///< by op: depends on a gradient, or serves only such ops
  std::vector<int> of_op;         ///< by op; -1: set-up and backward
  std::vector<bool> again;
  std::map<StorageId, std::vector<int>> writers;
  std::map<StorageId, int> of_storage;  ///< storages that are not kept

  Segments(const Program& step, const RecomputeRule& rule);

 private:
  void find_backward(const Program& step);
  void number(const Program& step, const RecomputeRule& rule);
};

bool updates_something(const Program& step, const OpCall& op) {
  return std::ranges::any_of(op.outputs, [&](ValueId id) { return step.value(id).updates.has_value(); });
}

Segments::Segments(const Program& step, const RecomputeRule& rule)
    : is_backward(step.ops().size()), of_op(step.ops().size(), -1), again(step.ops().size()) {
  find_backward(step);
  number(step, rule);
  for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
    for (const ValueId output : step.op(index).outputs) writers[step.value(output).storage].push_back(index);
  }
  for (const auto& [storage, ops] : writers) {
    const int segment = of_op[static_cast<std::size_t>(ops.front())];
    const auto is_there = [&, segment = segment](int op) { return of_op[static_cast<std::size_t>(op)] == segment; };
    const bool made_again =
        std::ranges::all_of(ops, [&](int op) { return is_there(op) && again[static_cast<std::size_t>(op)]; });
    const bool read_there = std::ranges::all_of(step.values_in(storage), [&](ValueId id) {
      return !step.value(id).source && std::ranges::all_of(step.readers(id), [&](int op) {
        return is_there(op) || is_backward[static_cast<std::size_t>(op)];
      });
    });
    if (made_again && read_there) of_storage[storage] = segment;
  }
}

/// Whether the op is part of making a copy of a tensor: in another type, quantized, or in another layout.
bool is_copy(const OpCall& op) {
  constexpr std::array kinds{amax_kind, scale_from_amax_kind, quantize_kind, cast_kind,
                             copy_kind, transpose_kind,       reorder_kind};
  return std::ranges::any_of(kinds, [&](const OpKind& kind) { return op.kind == kind; });
}

void Segments::find_backward(const Program& step) {
  std::set<StorageId> gradients;
  for (const Value& value : step.values()) {
    if (value.source && value.spec.role == Role::gradient) gradients.insert(value.storage);
  }
  for (std::size_t index = 0; index < step.ops().size(); ++index) {
    const OpCall& op = step.ops()[index];
    const auto is_gradient = [&](ValueId id) { return gradients.contains(step.value(id).storage); };
    is_backward[index] =
        std::ranges::any_of(op.inputs, is_gradient) ||
        std::ranges::any_of(op.outputs, [&](ValueId id) { return step.spec(id).role == Role::gradient; });
    if (!is_backward[index]) continue;
    for (const ValueId id : op.outputs) gradients.insert(step.value(id).storage);
  }
  // Copies that a backward makes of activations and weights. Other ops that only a backward reads belong to a forward:
  // a micro-batch's last product, or a repeated op.
  const auto first = static_cast<std::size_t>(std::ranges::find(is_backward, true) - is_backward.begin());
  for (std::size_t index = step.ops().size(); index-- > first;) {
    if (!is_copy(step.ops()[index])) continue;
    const auto serves = [&](ValueId id) {
      return std::ranges::all_of(step.readers(id), [&](int op) { return is_backward[static_cast<std::size_t>(op)]; });
    };
    is_backward[index] = is_backward[index] || std::ranges::all_of(step.op(static_cast<int>(index)).outputs, serves);
  }
}

void Segments::number(const Program& step, const RecomputeRule& rule) {
  std::map<std::pair<std::string, int>, int> numbers;
  int stretch = 0;
  bool after_backward = false;
  for (std::size_t index = 0; index < step.ops().size(); ++index) {
    const OpCall& op = step.ops()[index];
    if (op.phase != Phase::timed) continue;
    if (after_backward && !is_backward[index]) ++stretch;
    after_backward = is_backward[index];
    if (is_backward[index]) continue;
    const Recompute its = rule(op);
    of_op[index] = numbers.try_emplace({its.segment, stretch}, static_cast<int>(numbers.size())).first->second;
    again[index] = its.again && op.group.empty() && !updates_something(step, op);
  }
}

class Recomputing {
 public:
  Recomputing(const Program& step, const RecomputeRule& rule)
      : step_(step), segments_(step, rule), result_(step.mesh()) {
    ids_ = copy_values(step, result_, [](TensorSpec&) {});
    again_.resize(ids_.size());
    for (int index = 0; index < static_cast<int>(step.ops().size()); ++index) {
      if (!segments_.is_backward[static_cast<std::size_t>(index)]) continue;
      for (const ValueId id : step.op(index).inputs) {
        const StorageId storage = step.value(id).storage;
        if (const auto found = segments_.of_storage.find(storage); found != segments_.of_storage.end())
          wanted_[found->second].insert(storage);
      }
    }
  }

  [[nodiscard]] Program take() && {
    for (int index = 0; index < static_cast<int>(step_.ops().size()); ++index) {
      const bool backward = segments_.is_backward[static_cast<std::size_t>(index)];
      for (const ValueId id : step_.op(index).inputs) {
        const auto found = segments_.of_storage.find(step_.value(id).storage);
        if (backward && found != segments_.of_storage.end()) run_again(found->second, index);
      }
      OpCall op = step_.op(index);
      for (ValueId& id : op.inputs) id = backward ? newest(id) : ids_[at(id)];
      for (ValueId& id : op.outputs) id = ids_[at(id)];
      append(std::move(op));
    }
    result_.begin(Phase::timed);
    return std::move(result_);
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  void append(OpCall op) {
    result_.begin(op.phase);
    result_.append(std::move(op));
  }

  // Parts of a storage may not have been repeated.
  [[nodiscard]] ValueId newest(ValueId id) const {
    const std::optional<ValueId> again = again_[at(id)];
    return again && result_.available(*again) ? *again : ids_[at(id)];
  }

  // Repeats the ops that make what the backward reads of a segment, ascending. Later calls add nothing.
  void run_again(int segment, int before) {
    std::set<StorageId> open;
    std::swap(open, wanted_[segment]);
    std::set<int> ops;
    while (!open.empty()) {
      const StorageId storage = open.extract(open.begin()).value();
      for (const int op : segments_.writers.at(storage)) {
        if (!ops.insert(op).second) continue;
        for (const ValueId id : step_.op(op).inputs) {
          if (segments_.of_storage.contains(step_.value(id).storage)) open.insert(step_.value(id).storage);
        }
      }
    }
    for (const int index : ops) {
      OpCall op = step_.op(index);
      for (ValueId& id : op.inputs) {
        expect_unchanged(op, id, index, before);
        id = newest(id);
      }
      op.label = result_.unique_name(op.label + ".again");  // before the outputs, which may get the same name
      for (ValueId& id : op.outputs) id = reserved_again(id);
      append(std::move(op));
    }
  }

  // A separate storage for repeated values, part by part.
  ValueId reserved_again(ValueId id) {
    for (const ValueId each : step_.values_in(step_.value(id).storage)) {
      const Value& value = step_.value(each);
      if (again_[at(each)] || value.updates) continue;
      TensorSpec spec = value.spec;
      place_like(result_, ids_[at(each)], std::string(spec.global_name()) + ".again", spec);
      if (value.part_of) {
        const std::int64_t distance = value.offset_bytes - step_.value(*value.part_of).offset_bytes;
        again_[at(each)] =
            result_.part(*again_[at(*value.part_of)], std::move(spec), distance * 8 / bits_of(spec.dtype));
      } else {
        again_[at(each)] = result_.reserve(std::move(spec));
      }
    }
    return *again_[at(id)];
  }

  void expect_unchanged(const OpCall& op, ValueId input, int first, int again) const {
    const auto written = segments_.writers.find(step_.value(input).storage);
    if (written == segments_.writers.end()) return;
    const auto later = std::ranges::upper_bound(written->second, first);
    if (later == written->second.end() || *later >= again) return;
    throw ProgramError("checkpoint: op '" + op.label + "' cannot be repeated: '" + step_.op(*later).label +
                       "' has overwritten '" + step_.spec(input).name + "'");
  }

  const Program& step_;
  Segments segments_;
  Program result_;
  std::vector<ValueId> ids_;
  std::vector<std::optional<ValueId>> again_;  // by value of the step: made by a repeated op
  std::map<int, std::set<StorageId>> wanted_;  // by segment: what the backward reads of it
};

bool is_product(const OpCall& op) {
  const std::string_view kind = op.kind.name;
  return kind.find("gemm") != kind.npos || kind.starts_with("conv") || kind.starts_with("attention");
}

}  // namespace

RecomputeRule every_nth_block(int n, bool (*again)(const OpCall&)) {
  return [n, again](const OpCall& op) -> Recompute {
    const std::string layer(layer_of(op.label));
    const std::optional<int> block = block_of(op.label);
    if (!block) return {layer, false};
    return {layer.substr(0, layer.find_last_not_of("0123456789") + 1) + std::to_string(*block / n), again(op)};
  };
}

std::span<const RecomputePolicy> recompute_policies() {
  static const std::array<RecomputePolicy, 4> policies{
      {{"none", "nothing", {}},
       {"attention", "attention",
        every_nth_block(1, [](const OpCall& op) { return op.kind == attention_forward_kind; })},
       {"pointwise", "norms and activations", every_nth_block(1, [](const OpCall& op) { return !is_product(op); })},
       {"block", "every block", every_nth_block(1, [](const OpCall&) { return true; })}}};
  return policies;
}

Program checkpoint(const Program& step, const RecomputeRule& rule) { return Recomputing(step, rule).take(); }

}  // namespace gpubench

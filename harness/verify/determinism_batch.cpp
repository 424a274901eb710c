// Batch invariance: whether an item alone gives the same bits as in a batch.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/core/error.h"
#include "harness/verify/determinism_ways.h"

namespace gpubench {
namespace {

constexpr std::int64_t other_batch = 4;  ///< for a case whose batch is 1

// The axis along which `all` is `items` times as long as `one`; empty if no axis is.
std::optional<int> batch_axis_of(const Shape& one, const Shape& all, std::int64_t items) {
  std::optional<int> axis;
  if (one.rank() != all.rank()) return axis;
  for (int i = 0; i < one.rank(); ++i) {
    if (one[i] == all[i]) continue;
    if (axis || one[i] * items != all[i]) return {};
    axis = i;
  }
  return axis;
}

// The item's elements along the axis.
HostTensor item_of(const HostTensor& all, const TensorSpec& one, int axis, std::int64_t item) {
  HostTensor part(one);
  const AxisView from(all.spec.shape, axis), to(one.shape, axis);
  for (std::int64_t outer = 0; outer < to.outer; ++outer) {
    for (std::int64_t e = 0; e < to.extent * to.inner; ++e) {
      const std::int64_t source = from.element(outer, item * to.extent, e);
      store_bits(one.dtype, part.bytes.data(), to.element(outer, 0, e), load_bits(one.dtype, all.bytes.data(), source));
    }
  }
  return part;
}

constexpr std::array<std::string_view, 6> mixing{"batch_norm",   "conv2d_batch_norm", "dropout",
                                                 "group_tokens", "permute_tokens",    "grouped_gemm"};

}  // namespace

int first_mixing_op(const Program& program) {
  const auto mixes = [](const OpCall& call) {
    return std::ranges::any_of(mixing, [&](std::string_view start) { return call.kind.name.starts_with(start); }) ||
           call.kind.name == "unpermute_tokens";
  };
  return static_cast<int>(std::ranges::find_if(program.ops(), mixes) - program.ops().begin());
}

PlannedCase with_batch(const PlannedCase& planned, std::int64_t batch) {
  PlannedCase other = planned;
  for (auto& [name, extent] : other.c.dims) {
    if (name == planned.workload->info().batch_axis) extent = batch;
  }
  return with_program(std::move(other));
}

namespace {

class BatchTrial {
 public:
  BatchTrial(Backend& backend, const PlannedCase& planned, const RunOptions& options)
      : items_(planned.c.dim(planned.workload->info().batch_axis) > 1
                   ? planned.c.dim(planned.workload->info().batch_axis)
                   : other_batch),
        all_case_(with_batch(planned, items_)),
        one_case_(with_batch(planned, 1)),
        all_(backend, all_case_, options),
        one_(backend, one_case_, options) {}

  Repetition run() {
    if (!all_.prepared().state().empty()) return untested(way::batch, "it updates its inputs from the whole batch");
    const int mixing_op = first_mixing_op(one_.program());
    all_.run();
    const std::vector<LeftValue> in_batch = all_.left();
    std::size_t compared = 0;
    for (const std::int64_t item : {std::int64_t{0}, items_ - 1}) {
      give(item);
      one_.run();
      for (const LeftValue& alone : one_.left()) {
        if (alone.op >= mixing_op || alone.role() != Role::activation || !is_float(alone.tensor.spec.dtype)) continue;
        const std::string& name = alone.tensor.spec.name;
        const auto other = std::ranges::find(in_batch, name, [](const LeftValue& v) { return v.tensor.spec.name; });
        if (other == in_batch.end()) continue;
        const std::optional<int> axis = batch_axis_of(alone.tensor.spec.shape, other->tensor.spec.shape, items_);
        if (!axis) continue;
        ++compared;
        const HostTensor part = item_of(other->tensor, alone.tensor.spec, *axis, item);
        if (part.bytes == alone.tensor.bytes) continue;
        return {std::string(way::batch), Sameness::differs,
                fmt::format("item {} of {}: {}", item, items_, one_.text(alone.op, part, alone.tensor))};
      }
    }
    if (compared == 0) return untested(way::batch, "no activation has separate items");
    return {std::string(way::batch), Sameness::same, fmt::format("items 0 and {} of {}", items_ - 1, items_)};
  }

 private:
  void give(std::int64_t item) {
    const std::map<std::string, HostTensor> sources = all_.sources();
    for (int id = 0; id < static_cast<int>(one_.program().values().size()); ++id) {
      const Value& value = one_.program().value({id});
      const auto whole = sources.find(value.spec.name);
      if (!value.source || value.part_of || whole == sources.end()) continue;
      const std::optional<int> axis = batch_axis_of(value.spec.shape, whole->second.spec.shape, items_);
      if (!axis && value.spec.shape != whole->second.spec.shape) continue;
      one_.prepared().give({id}, axis ? item_of(whole->second, value.spec, *axis, item) : whole->second);
    }
    one_.prepared().set_up();
  }

  std::int64_t items_;
  PlannedCase all_case_, one_case_;
  DeterminismSubject all_, one_;
};

}  // namespace

Repetition batch_repetition(Backend& backend, const PlannedCase& planned, const RunOptions& options) {
  if (planned.workload->info().batch_axis.empty()) return untested(way::batch, "its workload has no batch");
  return tried(way::batch, "no program of one item", [&] { return BatchTrial(backend, planned, options).run(); });
}

}  // namespace gpubench

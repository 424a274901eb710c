#include "harness/run/determinism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "harness/core/error.h"
#include "harness/core/storage_content.h"
#include "harness/parity/compare.h"
#include "harness/parity/textbook_outputs.h"
#include "harness/parity/wrong_places.h"
#include "harness/run/check.h"
#include "harness/run/prepared_case.h"

namespace gpubench {
namespace {

constexpr std::int64_t most_parts = 64;
constexpr std::int64_t other_batch = 4;  ///< of a case whose batch is 1

/// A value that was left, and the op that wrote it.
struct LeftValue {
  int op = 0;
  Role role = Role::activation;
  HostTensor tensor;
};

class Subject {
 public:
  Subject(Backend& backend, const PlannedCase& planned, const RunOptions& options)
      : arena_(backend),
        prepared_(backend, arena_, planned, options.seed, backend.device().available_bytes,
                  PlanRequest{{}, nullptr, options.deterministic}),
        whole_(prepared_.segment(0, static_cast<int>(prepared_.program().ops().size()))) {
    prepared_.set_up();
  }

  [[nodiscard]] const Program& program() const { return prepared_.program(); }
  [[nodiscard]] PreparedCase& prepared() { return prepared_; }
  [[nodiscard]] std::string implementation(int op) const { return prepared_.implementation(op); }

  void run() {
    prepared_.reset(0);
    prepared_.begin_storages(0, 0, static_cast<int>(program().ops().size()));
    prepared_.backend().run(whole_);
  }
  void run_op_by_op() {
    prepared_.reset(0);
    for (const int op : prepared_.ops(Phase::timed)) {
      prepared_.begin_storages(0, op, op + 1);
      prepared_.backend().run(prepared_.launch(0, op));
    }
  }

  /// Every float or integer value that is in memory at the end, in the order of the ops.
  [[nodiscard]] std::vector<LeftValue> left() {
    StorageReader reader(prepared_);
    std::vector<LeftValue> all;
    for (const int op : prepared_.ops(Phase::timed)) {
      for (const ValueId id : program().op(op).outputs) {
        const Value& value = program().value(id);
        if (!prepared_.memory_plan().is_left(value.storage) || !program().survives(id)) continue;
        all.push_back(
            {op, value.spec.role, HostTensor(TensorView(value.spec, reader[value.storage] + value.offset_bytes))});
      }
    }
    return all;
  }

  /// "'h'[0, 3] of op 'block0.up' (gemm), 0.12 for 0.125, and 16 more elements of it"; empty where no bit differs.
  [[nodiscard]] std::string difference(const std::vector<LeftValue>& before, const std::vector<LeftValue>& now) const {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const HostTensor& a = before[i].tensor;
      const HostTensor& b = now[i].tensor;
      if (a.bytes == b.bytes) continue;
      return text(before[i].op, a.spec, gpubench::difference(b.view(), a.view(), 1), a, b);
    }
    return {};
  }

  [[nodiscard]] std::string text(int op, const TensorSpec& spec, const Difference& found, const HostTensor& before,
                                 const HostTensor& now) const {
    const OpCall& call = program().op(op);
    return fmt::format("'{}'[{}] of op '{}' ({}), {} for {}{}", spec.name,
                       fmt::join(multi_index(spec.shape, found.first), ", "), call.label, call.kind.name,
                       now.get(found.first), before.get(found.first),
                       found.elements > 1 ? fmt::format(", and {} more elements of it", found.elements - 1) : "");
  }

 private:
  Arena arena_;
  PreparedCase prepared_;
  Launch whole_;
};

CaseBits bits_of(const PlannedCase& planned, std::uint64_t seed, const Subject& subject,
                 const std::vector<LeftValue>& left) {
  CaseBits bits{planned.id(), seed, {}};
  for (const LeftValue& value : left) {
    const OpCall& call = subject.program().op(value.op);
    ValueBits& one = bits.values.emplace_back();
    one.tensor = value.tensor.spec.name;
    one.op = call.label;
    one.kind = std::string(call.kind.name);
    one.implementation = subject.implementation(value.op);
    one.elements = value.tensor.elements();
    // An even number, so that no part begins in the middle of a byte.
    one.part_elements = std::max<std::int64_t>(2, (one.elements + most_parts - 1) / most_parts / 2 * 2 + 2);
    for (std::int64_t first = 0; first < one.elements; first += one.part_elements) {
      const std::int64_t count = std::min(one.part_elements, one.elements - first);
      const DType type = value.tensor.spec.dtype;
      one.parts.push_back(fingerprint(std::span(value.tensor.bytes)
                                          .subspan(static_cast<std::size_t>(bytes_of(type, first)),
                                                   static_cast<std::size_t>(bytes_of(type, count)))));
    }
  }
  return bits;
}

// The axis along which a tensor has `items` times as much in one program as in the other; none where it is not so.
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
    for (std::int64_t e = 0; e < to.extent * to.inner; ++e) {  // of neighbouring slices
      const std::int64_t source = from.element(outer, item * to.extent, e);
      store_bits(one.dtype, part.bytes.data(), to.element(outer, 0, e), load_bits(one.dtype, all.bytes.data(), source));
    }
  }
  return part;
}

const Value* value_named(const Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.values(), name, [](const Value& value) { return value.spec.name; });
  return found == program.values().end() ? nullptr : &*found;
}

// Ops of which an item's result depends on the others, or on its place among them, by definition.
constexpr std::array<std::string_view, 6> mixing{"batch_norm",   "conv2d_batch_norm", "dropout",
                                                 "group_tokens", "permute_tokens",    "grouped_gemm"};

// The first such op; the number of ops where there is none.
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
    Repetition repetition{"alone in its batch", Sameness::untested, ""};
    if (!all_.prepared().state().empty()) {
      repetition.text = "it updates what it reads, by the whole batch";
      return repetition;
    }
    const int mixing_op = first_mixing_op(one_.program());
    all_.run();
    const std::vector<LeftValue> in_batch = all_.left();
    std::size_t compared = 0;
    for (const std::int64_t item : {std::int64_t{0}, items_ - 1}) {
      give(item);
      one_.run();
      for (const LeftValue& alone : one_.left()) {
        if (alone.op >= mixing_op || alone.role != Role::activation || !is_float(alone.tensor.spec.dtype)) continue;
        const std::string& name = alone.tensor.spec.name;
        const auto other = std::ranges::find(in_batch, name, [](const LeftValue& v) { return v.tensor.spec.name; });
        if (other == in_batch.end()) continue;
        const std::optional<int> axis = batch_axis_of(alone.tensor.spec.shape, other->tensor.spec.shape, items_);
        if (!axis) continue;
        ++compared;
        const HostTensor part = item_of(other->tensor, alone.tensor.spec, *axis, item);
        if (part.bytes == alone.tensor.bytes) continue;
        repetition.outcome = Sameness::differs;
        repetition.text =
            fmt::format("item {} of {}: {}", item, items_,
                        one_.text(alone.op, alone.tensor.spec,
                                  gpubench::difference(part.view(), alone.tensor.view(), 1), alone.tensor, part));
        return repetition;
      }
    }
    if (compared > 0) repetition.outcome = Sameness::same;
    repetition.text = compared > 0 ? fmt::format("items 0 and {} of {}", items_ - 1, items_)
                                   : "no activation of it is made of the items one by one";
    return repetition;
  }

 private:
  // Gives the program of one item the data of that item.
  void give(std::int64_t item) {
    all_.prepared().reset(0);  // weights that it updated
    StorageReader reader(all_.prepared());
    for (int id = 0; id < static_cast<int>(one_.program().values().size()); ++id) {
      const Value& value = one_.program().value({id});
      if (!value.source || value.part_of) continue;
      const Value* other = value_named(all_.program(), value.spec.name);
      if (other == nullptr) continue;
      const HostTensor whole(TensorView(other->spec, reader[other->storage] + other->offset_bytes));
      const std::optional<int> axis = batch_axis_of(value.spec.shape, other->spec.shape, items_);
      if (!axis && value.spec.shape != other->spec.shape) continue;
      one_.prepared().give({id}, axis ? item_of(whole, value.spec, *axis, item) : whole);
    }
    one_.prepared().set_up();
  }

  std::int64_t items_;
  PlannedCase all_case_, one_case_;
  Subject all_, one_;
};

}  // namespace

std::string first_difference(const CaseBits& before, const CaseBits& now) {
  if (before.values.size() != now.values.size())
    return fmt::format("{} tensors for {}: the programs differ", now.values.size(), before.values.size());
  std::string first;
  int tensors = 0;
  for (std::size_t i = 0; i < now.values.size(); ++i) {
    const ValueBits& a = before.values[i];
    const ValueBits& b = now.values[i];
    if (a.tensor == b.tensor && a.part_elements == b.part_elements && a.parts == b.parts) continue;
    ++tensors;
    if (!first.empty()) continue;
    if (a.tensor != b.tensor || a.parts.size() != b.parts.size() || a.part_elements != b.part_elements)
      return fmt::format("'{}' for '{}': the programs differ", b.tensor, a.tensor);
    const auto part = std::ranges::mismatch(a.parts, b.parts).in1 - a.parts.begin();
    first = fmt::format("elements {} to {} of '{}' of op '{}' ({})", part * a.part_elements,
                        std::min(a.elements, (part + 1) * a.part_elements) - 1, b.tensor, b.op, b.kind);
    if (a.implementation != b.implementation)
      first += fmt::format(", by {} for {}", b.implementation, a.implementation);
  }
  return first.empty() ? first : fmt::format("{}; {} of {} tensors differ", first, tensors, now.values.size());
}

DeterminismRecord measure_determinism(Backend& backend, const PlannedCase& planned, const RunOptions& options,
                                      int runs) {
  DeterminismRecord record{planned.id(), {}, {}};
  try {
    Subject subject(backend, planned, options);
    subject.run();
    const std::vector<LeftValue> first = subject.left();
    record.bits = bits_of(planned, options.seed, subject, first);
    const auto compare = [&](std::string way, int times, const auto& run) {
      Repetition repetition{std::move(way), Sameness::same, ""};
      for (int i = 0; i < times && repetition.outcome == Sameness::same; ++i) {
        run();
        repetition.text = subject.difference(first, subject.left());
        if (!repetition.text.empty()) repetition.outcome = Sameness::differs;
      }
      record.repetitions.push_back(std::move(repetition));
    };
    compare("again", runs - 1, [&] { subject.run(); });
    compare("op by op", 1, [&] { subject.run_op_by_op(); });
    Repetition batch{"alone in its batch", Sameness::untested, "its workload has no batch"};
    if (!planned.workload->info().batch_axis.empty()) {
      try {
        batch = BatchTrial(backend, planned, options).run();
      } catch (const Unsupported& e) {
        batch.text = e.what();
      } catch (const ProgramError& e) {
        batch.text = fmt::format("no program of one item: {}", e.what());
      }
    }
    record.repetitions.push_back(std::move(batch));
  } catch (const Unsupported& e) {
    record.unsupported = e.what();
  }
  return record;
}

}  // namespace gpubench

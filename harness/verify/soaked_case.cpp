#include "harness/verify/soaked_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/core/step_parts.h"
#include "harness/parity/compare_elements.h"

namespace gpubench {
namespace {

constexpr std::int64_t poisoned_parts = 16;  // one is poisoned before each launch, in turn

}  // namespace

SoakedCase::SoakedCase(Backend& backend, const PlannedCase& planned, const RunOptions& options,
                       const TuningCache* choices)
    : planned_(planned),
      arena_(backend),
      prepared_(backend, arena_, planned, options.seed, backend.device().available_bytes,
                PlanRequest{.tuning_cache = choices, .deterministic = true, .alive = options.alive}),
      watched_(prepared_.produced()),
      judging_("the check of " + planned.id()),
      launching_("a launch of " + planned.id()) {
  watched_.insert(watched_.end(), prepared_.state().begin(), prepared_.state().end());
  std::set<int> seen;
  for (const int op : prepared_.ops(Phase::timed)) {
    for (const ValueId id : prepared_.program().op(op).outputs) {
      const StorageId storage = prepared_.program().value(id).storage;
      const auto same_storage = [&](StorageId watched) { return watched.index == storage.index; };
      if (std::ranges::any_of(watched_, same_storage) && seen.insert(storage.index).second) values_.push_back({op, id});
    }
  }
}

std::string SoakedCase::judge(RunOptions options, std::uint64_t seed) {
  options.seed = seed;
  prepared_.refill(seed);
  CaseRecord record = open_record(planned_, options);
  CaseCheck check(prepared_, options, record);
  check.alone();
  prepared_.make_copies(0);  // no further copies
  if (record.verdict == Verdict::pass) check.replay();
  is_judged_ = record.verdict == Verdict::pass;
  if (!is_judged_) return fmt::format("{}: {}", id(), record.reason);
  right_.clear();
  for (const StorageId storage : watched_) right_[storage.index] = prepared_.memory(0).block(storage).copy();
  prints_ = fingerprints_of(prepared_, 0, watched_);
  clear();
  return {};
}

void SoakedCase::clear() {
  const bool whole = prepared_.memory_plan().reuses();  // the memory holds another storage's content
  prepared_.reset(0, whole ? Stretch{} : Stretch{turn_++ % poisoned_parts, poisoned_parts});
  prepared_.begin_storages(0, 0, static_cast<int>(prepared_.program().ops().size()));
}

void SoakedCase::launch() { prepared_.backend().run(prepared_.timed(0)); }

bool SoakedCase::is_right() {
  found_ = fingerprints_of(prepared_, 0, watched_);
  return found_ == prints_;
}

std::string SoakedCase::first_difference() {
  const std::string found = first_wrong();
  clear();
  launch();
  return found + (fingerprints_of(prepared_, 0, watched_) == prints_ ? "; the next launch is right"
                                                                     : "; the next launch is wrong too");
}

std::vector<std::uint64_t> SoakedCase::left() const {
  std::vector<std::uint64_t> prints;
  for (const SoakedValue& value : values_of(found_)) prints.push_back(value.print);
  return prints;
}

std::vector<SoakedValue> SoakedCase::values_of(const Fingerprints& prints) const {
  std::vector<SoakedValue> all;
  for (const auto& [op, id] : values_) {
    const OpCall& call = prepared_.program().op(op);
    const Value& value = prepared_.program().value(id);
    all.push_back({call.label, std::string(call.kind.name), prepared_.implementation(op), value.spec.name,
                   prints.at(value.storage.index)});
  }
  return all;
}

// The first op, in order of execution, with a remaining output that differs.
std::string SoakedCase::first_wrong() {
  StorageReader reader(prepared_);
  const Program& program = prepared_.program();
  for (const int op : prepared_.ops(Phase::timed)) {
    const OpCall& call = program.op(op);
    for (const ValueId id : call.outputs) {
      const Value& value = program.value(id);
      const auto right = right_.find(value.storage.index);
      if (right == right_.end()) continue;
      const TensorView now(value.spec, reader[value.storage] + value.offset_bytes);
      const TensorView then(value.spec, right->second.bytes.data() + value.offset_bytes);
      const WrongBits found = wrong_bits(now, then);
      if (found.elements == 0) continue;
      return fmt::format(
          "op '{}' ({}, by {}){}: {} of {} elements of '{}' differ, the first at [{}]: {:.9g} for {:.9g}{}", call.label,
          call.kind.name, prepared_.implementation(op), in_layer(program, call), found.elements,
          value.spec.shape.elements(), value.spec.name, fmt::join(multi_index(value.spec.shape, found.first), ", "),
          now[found.first], then[found.first], found.words);
    }
  }
  return "bytes between the elements of a tensor differ";
}

}  // namespace gpubench

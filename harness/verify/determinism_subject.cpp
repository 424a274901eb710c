#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/core/step_parts.h"
#include "harness/parity/wrong_places.h"
#include "harness/run/check.h"
#include "harness/verify/determinism_ways.h"

namespace gpubench {

DeterminismSubject::DeterminismSubject(Backend& backend, const PlannedCase& planned, const RunOptions& options)
    : arena_(backend),
      prepared_(backend, arena_, planned, options.seed, backend.device().available_bytes,
                PlanRequest{.deterministic = options.deterministic, .alive = options.alive}) {
  prepared_.set_up_to_record();
  whole_ = prepared_.segment(0, static_cast<int>(program().ops().size()));
}

void DeterminismSubject::run(const Launch& launch) {
  prepared_.reset(0);
  prepared_.begin_storages(0, 0, static_cast<int>(program().ops().size()));
  prepared_.backend().run(launch);
}

void DeterminismSubject::run() { run(whole_); }

void DeterminismSubject::run_in_other_mode() {
  const LaunchMode other = prepared_.planned().c.launch == LaunchMode::graph ? LaunchMode::stream : LaunchMode::graph;
  run(prepared_.segment(0, static_cast<int>(program().ops().size()), other));
}

void DeterminismSubject::run_op_by_op() {
  prepared_.reset(0);
  for (const int op : prepared_.ops(Phase::timed)) {
    prepared_.begin_storages(0, op, op + 1);
    prepared_.backend().run(prepared_.launch(0, op));
  }
}

std::vector<LeftValue> DeterminismSubject::left() {
  StorageReader reader(prepared_);
  std::vector<LeftValue> all;
  for (const int op : prepared_.ops(Phase::timed)) {
    for (const ValueId id : program().op(op).outputs) {
      const Value& value = program().value(id);
      if (!prepared_.memory_plan().is_left(value.storage) || !program().survives(id)) continue;
      all.push_back({op, id, HostTensor(TensorView(value.spec, reader[value.storage] + value.offset_bytes))});
    }
  }
  return all;
}

std::map<std::string, HostTensor> DeterminismSubject::sources() {
  prepared_.reset(0);  // what the program updates is as it was
  StorageReader reader(prepared_);
  std::map<std::string, HostTensor> all;
  for (const Value& value : program().values()) {
    if (!value.source || value.part_of) continue;
    all.emplace(value.spec.name, HostTensor(TensorView(value.spec, reader[value.storage] + value.offset_bytes)));
  }
  return all;
}

std::string DeterminismSubject::difference(const std::vector<LeftValue>& before,
                                           const std::vector<LeftValue>& now) const {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].tensor.bytes != now[i].tensor.bytes) return text(before[i].op, before[i].tensor, now[i].tensor);
  }
  return {};
}

std::string DeterminismSubject::text(int op, const HostTensor& before, const HostTensor& now) const {
  const OpCall& call = program().op(op);
  const TensorSpec& spec = now.spec;
  const WrongBits found = wrong_bits(now.view(), before.view());
  const std::string rank = spec.placement.ranks > 1 ? fmt::format(" on rank {}", spec.placement.rank) : "";
  return fmt::format(
      "'{}'[{}] of op '{}' ({}){}{}, {} for {}{}{}", spec.name, fmt::join(multi_index(spec.shape, found.first), ", "),
      call.label, call.kind.name, in_layer(program(), call), rank, now.get(found.first), before.get(found.first),
      found.elements > 1 ? fmt::format(", and {} more elements of it", found.elements - 1) : "", found.words);
}

}  // namespace gpubench

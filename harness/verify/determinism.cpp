#include "harness/verify/determinism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/step_parts.h"
#include "harness/core/storage_content.h"
#include "harness/parity/compare_elements.h"
#include "harness/run/check.h"
#include "harness/verify/determinism_ways.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_parts = 64;

CaseBits bits_of(const PlannedCase& planned, std::uint64_t seed, const DeterminismSubject& subject,
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
    // Even, so that no part begins within a byte.
    one.part_elements = std::max<std::int64_t>(2, (one.elements + max_parts - 1) / max_parts / 2 * 2 + 2);
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

}  // namespace

Repetition tried(std::string_view way, const std::string& no_program, const std::function<Repetition()>& trial) {
  try {
    return trial();
  } catch (const Unsupported& e) {
    return untested(way, e.what());
  } catch (const DoesNotFit& e) {
    return untested(way, e.what());
  } catch (const ProgramError& e) {
    return untested(way, fmt::format("{}: {}", no_program, e.what()));
  }
}

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

bool is_promised(std::string_view way, bool deterministic) {
  if (way == way::replicas || way == way::before) return true;
  return deterministic && (way == way::again || way == way::op_by_op || way == way::graph || way == way::one_rank);
}

Backend& DeterminismProbe::of_ranks(int ranks) {
  if (ranks == 1) return backend_;
  if (!options_.open_ranks)
    throw Unsupported(fmt::format("the {} backend runs on one rank only", backend_.device().kind));
  std::unique_ptr<Backend>& several = several_[ranks];
  try {
    if (several == nullptr) several = options_.open_ranks(ranks, nullptr);
  } catch (const DeviceLost&) {
    throw;
  } catch (const BackendError& e) {
    throw Unsupported(e.what());
  }
  return *several;
}

DeterminismRecord DeterminismProbe::measure(const PlannedCase& planned) {
  DeterminismRecord record{planned.id(), {}, {}};
  const auto now = [&](std::string_view way) {
    if (effort_.now) effort_.now(fmt::format("{}: {}", planned.id(), way));
  };
  try {
    now("first run");
    Backend& backend = of_ranks(planned.c.ranks);
    DeterminismSubject subject(backend, planned, options_);
    subject.run();
    const std::vector<LeftValue> first = subject.left();
    record.bits = bits_of(planned, options_.seed, subject, first);
    const auto compare = [&](std::string_view way, int times, const auto& run) {
      now(way);
      Repetition repetition{std::string(way), Sameness::same};
      for (int i = 0; i < times && repetition.outcome == Sameness::same; ++i) {
        run();
        repetition.text = subject.difference(first, subject.left());
        if (!repetition.text.empty()) repetition.outcome = Sameness::differs;
      }
      return repetition;
    };
    record.repetitions.push_back(compare(way::again, effort_.runs - 1, [&] { subject.run(); }));
    record.repetitions.push_back(compare(way::op_by_op, 1, [&] { subject.run_op_by_op(); }));
    Repetition graph = untested(way::graph, fmt::format("the {} backend has no graphs", backend.device().kind));
    try {
      if (effort_.has_graphs) graph = compare(way::graph, 1, [&] { subject.run_in_other_mode(); });
    } catch (const Unsupported& e) {
      graph.text = e.what();
    }
    record.repetitions.push_back(std::move(graph));
    if (planned.c.ranks == 1) {
      now(way::batch);
      record.repetitions.push_back(batch_repetition(backend, planned, options_));
    } else {
      now("comparison of the ranks");
      for (Repetition& one : rank_repetitions(backend, planned, options_, subject, first))
        record.repetitions.push_back(std::move(one));
    }
  } catch (const Unsupported& e) {
    record.unsupported = e.what();
  } catch (const DoesNotFit& e) {
    record.unsupported = e.what();
  }
  return record;
}

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
      if (!prepared_.memory_plan().keeps_memory(value.storage) || !program().survives(id)) continue;
      all.push_back({op, id, HostTensor(TensorView(value.spec, reader[value.storage] + value.offset_bytes))});
    }
  }
  return all;
}

std::map<std::string, HostTensor> DeterminismSubject::sources() {
  prepared_.reset(0);
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
  return fmt::format("'{}'[{}] of op '{}' ({}){}{}, {} for {}{}{}", spec.name,
                     fmt::join(multi_index(spec.shape, found.first), ", "), call.label, call.kind.name,
                     in_layer(program(), call), rank, now.get(found.first), before.get(found.first),
                     found.elements > 1 ? fmt::format(", and {} more elements", found.elements - 1) : "", found.words);
}

}  // namespace gpubench

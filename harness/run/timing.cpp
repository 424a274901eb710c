#include "harness/run/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "harness/measure/protocol.h"
#include "harness/measure/statistics.h"
#include "reference/ops/collective.h"
#include "reference/ops/optimizer.h"

namespace gpubench {
namespace {

// Telemetry needs at least 2 s; the margin is for runs faster than their median.
constexpr double energy_window_s = 2.2;
constexpr double max_runs = 1e8;
// Backends combine runs into one host call, in numbers that divide this. Other numbers of runs would be launched one by
// one, and the device would wait for its host. max_runs is a multiple.
constexpr double joined_runs = 256;

void restore_all(PreparedCase& prepared) {
  for (int copy = 0; copy < prepared.copies(); ++copy) prepared.restore(copy);
}

// Nanoseconds of one run; 0 if the round has no sample.
double per_run_ns(const RoundTimes& times, std::int64_t batch) {
  return times.device_ns.empty() ? 0.0 : median(times.device_ns) / static_cast<double>(batch);
}

bool all_positive(const std::vector<double>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](double ns) { return std::isfinite(ns) && ns > 0.0; });
}

RoundRecord judged_round(RoundTimes times, int samples) {
  RoundRecord round;
  round.times = std::move(times);
  if (static_cast<int>(round.times.device_ns.size()) != samples) {
    round.valid = false;
    round.note = fmt::format("{} samples requested, {} received", samples, round.times.device_ns.size());
  } else if (round.times.wall_ns.size() != round.times.device_ns.size()) {
    round.valid = false;
    round.note = fmt::format("{} samples by the device's clock, {} by the host's", round.times.device_ns.size(),
                             round.times.wall_ns.size());
  } else if (!all_positive(round.times.device_ns) || !all_positive(round.times.wall_ns)) {
    round.valid = false;
    round.note = "a sample took no time: a clock is too coarse or broken";
  }
  return round;
}

RoundRecord watched_round(PreparedCase& prepared, const RoundPlan& plan, const std::vector<Launch>& launches,
                          Telemetry& telemetry) {
  telemetry.begin_round();
  RoundTimes times;
  try {
    times = prepared.backend().time(launches, plan);
  } catch (...) {
    (void)telemetry.end_round();  // ends its polling
    throw;
  }
  std::optional<RoundTelemetry> readings = telemetry.end_round();
  RoundRecord round = judged_round(std::move(times), plan.samples);
  round.telemetry = std::move(readings);
  if (round.telemetry) round.telemetry->errors = telemetry.take_errors();
  return round;
}

// Why the round must be repeated: its times are unusable, or the sensors show that the device was slowed.
std::string fault_of(const RoundRecord& round, const Protocol& protocol) {
  if (!round.valid) return round.note;
  return round.telemetry ? round_fault(*round.telemetry, protocol.locked_clock_mhz) : "";
}

bool kept_despite_fault(const CaseRecord& record, const Protocol& protocol) {
  return std::any_of(record.rounds.begin(), record.rounds.end(),
                     [&](const RoundRecord& round) { return !fault_of(round, protocol).empty(); });
}

// Seconds of one run; also warms up. With short presets a first run that is long enough suffices.
double first_estimate_s(PreparedCase& prepared, const Protocol& protocol, const std::vector<Launch>& launches) {
  // A step runs once per sample, so one sample suffices.
  const int samples = prepared.planned().c.cache == CacheMode::step ? 1 : 3;
  const auto estimate_s = [&](int of_samples, int warmup_calls, double warmup_s) {
    const RoundTimes times =
        prepared.backend().time(launches, {of_samples, 1, warmup_calls, warmup_s, prepared.planned().c.cadence});
    restore_all(prepared);
    return per_run_ns(times, 1) * 1e-9;
  };
  if (protocol.first_warmup_calls <= 1) {
    const double first_s = estimate_s(1, 0, 0.0);
    // The first run may be the slowest, so a second one counts if the number of samples depends on it.
    const bool settles = samples_for(protocol, 1, first_s) == protocol.min_samples;
    if (first_s >= protocol.first_warmup_s) return settles ? first_s : estimate_s(1, 0, 0.0);
  }
  return estimate_s(samples, protocol.first_warmup_calls, protocol.first_warmup_s);
}

}  // namespace

RoundPlan plan_of_round(const PreparedCase& prepared, const Protocol& protocol, const CaseRecord& record) {
  RoundPlan plan{prepared.samples(), record.batch, prepared.warmup_calls(), 0.0, prepared.planned().c.cadence};
  if (prepared.state().empty() && plan.warmup_calls > 0) {  // by time, not by the estimate
    plan.warmup_calls = protocol.warmup_calls;
    plan.warmup_s = protocol.warmup_s;
  }
  return plan;
}

void time_round(PreparedCase& prepared, const Protocol& protocol, Telemetry& telemetry, CaseRecord& record,
                bool first) {
  const Stopwatch watch;
  const std::vector<Launch> launches = prepared.timed_launches();
  restore_all(prepared);
  if (first) {
    const double estimate_s = first_estimate_s(prepared, protocol, launches);
    if (record.batch == 0) record.batch = batch_for(protocol, prepared.planned().c.cache, estimate_s);
    prepared.set_round(warmup_calls_for(protocol, estimate_s), samples_for(protocol, record.batch, estimate_s));
  }
  const RoundPlan plan = plan_of_round(prepared, protocol, record);
  RoundRecord round = watched_round(prepared, plan, launches, telemetry);
  int rejected = 0;
  if (!kept_despite_fault(record, protocol)) {
    for (const double pause_s : redo_pauses_s) {
      if (fault_of(round, protocol).empty()) break;
      ++rejected;
      if (round.valid) telemetry.rest(pause_s);  // to cool down; a failed clock needs no rest
      restore_all(prepared);
      round = watched_round(prepared, plan, launches, telemetry);
    }
  }
  if (round.telemetry) round.telemetry->rejected = rejected;
  if (const std::string fault = fault_of(round, protocol); !fault.empty() && round.valid)
    round.note = fmt::format("kept although invalid: {}", fault);
  record.rounds.push_back(std::move(round));
  record.time_s += watch.seconds();
}

std::optional<double> energy_of_window(PreparedCase& prepared, Telemetry& telemetry, const CaseRecord& record) {
  const double median_ns = record.summary.median_ns;
  if (!(median_ns > 0.0) || record.rounds.empty() || !telemetry.counts_energy()) return std::nullopt;
  double runs = std::ceil(energy_window_s * 1e9 / median_ns);
  if (runs > joined_runs) runs = std::ceil(runs / joined_runs) * joined_runs;
  const std::vector<Launch> launches = prepared.timed_launches();
  restore_all(prepared);
  const RoundPlan plan{1, static_cast<std::int64_t>(std::min(runs, max_runs)), 0, 0.0};
  const std::vector<RoundRecord> window{watched_round(prepared, plan, launches, telemetry)};
  return energy_per_run_j(window, median_ns);
}

std::optional<double> time_compute_only(PreparedCase& prepared, const Protocol& protocol) {
  if (prepared.ops(Phase::timed).size() < 2) return std::nullopt;
  const Launch compute = prepared.without_collectives();
  if (compute == nullptr) return std::nullopt;
  const std::vector<Launch> launch{compute};
  prepared.restore(0);
  const int samples = std::max(prepared.samples(), samples_alone(protocol, 0.0));
  return per_run_ns(prepared.backend().time(launch, {samples, 1, 1, 0.0}), 1);
}

namespace {

/// Whether an op in place scales its result again in each run. Repeated averages and maxima do not grow.
bool compounds(const OpCall& call) {
  return (call.kind == all_reduce_kind && call.attributes.as<AllReduce>().reduction == Reduction::sum) ||
         (call.kind == reduce_scatter_kind && call.attributes.as<ReduceScatter>().reduction == Reduction::sum) ||
         call.kind == unscale_kind;
}

/// Inputs to restore for an op that compounds(): repeated runs on its result would overflow or vanish, and later ops
/// and checks would read infinities or zeros.
StorageContents kept_inputs_of(PreparedCase& prepared, int op) {
  StorageContents contents;
  const Program& program = prepared.program();
  const OpCall& call = program.op(op);
  if (!compounds(call)) return contents;
  for (const ValueId output : call.outputs) {
    const Value& value = program.value(output);
    if (value.updates && !program.is_state(value.storage))
      contents[value.storage.index] = prepared.memory(0).block(value.storage).copy();
  }
  return contents;
}

void put_back(PreparedCase& prepared, const StorageContents& contents) {
  for (const auto& [storage, content] : contents) {
    prepared.memory(0).block({storage}).modify(
        [&from = content.bytes](std::span<std::byte> bytes) { std::ranges::copy(from, bytes.begin()); });
  }
}

}  // namespace

std::vector<OpShare> time_ops_alone(PreparedCase& prepared, const Protocol& protocol) {
  std::vector<OpShare> shares;
  if (prepared.ops(Phase::timed).size() < 2) return shares;
  const Stopwatch watch;
  prepared.restore(0);  // later only what each op overwrote: a step has hundreds of ops and gigabytes of state
  for (const int op : prepared.ops(Phase::timed)) {
    const OpCall& call = prepared.program().op(op);
    const std::vector<Launch> launch{prepared.launch(0, op)};
    const StorageContents kept = kept_inputs_of(prepared, op);
    double ns = per_run_ns(prepared.backend().time(launch, {1, 1, 0, 0.0}), 1);
    const int samples = samples_alone(protocol, ns * 1e-9);
    if (samples > 0 && watch.seconds() < protocol.budget_s) {
      const std::int64_t batch = batch_for(protocol, CacheMode::warm, ns * 1e-9);
      ns = per_run_ns(prepared.backend().time(launch, {samples, batch, 0, 0.0}), batch);
    }
    prepared.restore_after(op);
    put_back(prepared, kept);
    const Cost cost = cost_of(prepared.program(), call);
    shares.push_back(
        {call.label, std::string(call.kind.name), prepared.implementation(op), ns, 0.0, cost.flop, cost.bytes});
  }
  return shares;
}

}  // namespace gpubench

// The members of records under the names that they have in JSON, each struct's listed once: record_writer.h and
// record_reader.h both walk these lists, so that they cannot disagree. Optional members are left out where they have no
// value, and may be missing when read; all others are required. Numbers are zero or more, but for those that
// signed_number() names; samples are looked at with their round.
#pragma once

#include <array>

#include "harness/core/record.h"

namespace gpubench::record_members {

template <class Archive>
void visit(Archive& a, Worst& w) {
  a("tensor", w.tensor);
  a("index", w.index);
  a.signed_number("got", w.got);
  a.signed_number("want", w.want);
  a("bound", w.bound);
}

template <class Archive>
void visit(Archive& a, OpParity& p) {
  a("label", p.label);
  a("kind", p.kind);
  a("phase", p.phase);
  a("implementation", p.implementation);
  a("choice", p.choice);
  a("rejected", p.rejected);
  a("status", p.verdict);
  a("reason", p.reason);
  a("error_over_bound", p.error_over_bound);
  a("judged", p.judged);
  a("elements", p.elements);
  a("bad", p.bad);
  a("worst", p.worst);
  a("mutations", p.mutations);
  a("mutations_rejected", p.mutations_rejected);
}

template <class Archive>
void visit(Archive& a, EndToEndTensor& t) {
  a("tensor", t.tensor);
  a("role", t.role);
  a("norm", t.norm);
  a("error", t.error);
  a("allowed", t.allowed);
}

template <class Archive>
void visit(Archive& a, Parity& p) {
  a("error_over_bound", p.error_over_bound);
  a("worst_op", p.worst_op);
  a("coverage", p.coverage);
  a("seed", p.seed);
  a("ops", p.ops);
  a("end_to_end", p.end_to_end);
}

template <class Archive>
void visit(Archive& a, Spread& s) {
  a("min", s.min);
  a("median", s.median);
  a("max", s.max);
}

template <class Archive>
void visit(Archive& a, RoundTelemetry& t) {
  a("readings", t.readings);
  a("window_s", t.window_s);
  a("sm_mhz", t.sm_mhz);
  a("memory_mhz", t.memory_mhz);
  a.signed_number("temperature_c", t.temperature_c);
  a("power_w", t.power_w);
  a("energy_j", t.energy_j);
  a("uncorrected_errors", t.uncorrected_errors);
  a("involuntary_switches", t.involuntary_switches);
  a("cpu_pressure", t.cpu_pressure);
  a("reasons", t.reasons);
  a("rejected", t.rejected);
}

template <class Archive>
void visit(Archive& a, RankTimes& r) {
  a("ns", r.ns);
}

template <class Archive>
void visit(Archive& a, CollectiveRates& c) {
  a("message_bytes", c.message_bytes);
  a("algorithm_bytes_per_s", c.algorithm_bytes_per_s);
  a("bus_bytes_per_s", c.bus_bytes_per_s);
}

template <class Archive>
void visit(Archive& a, RankSpread& r) {
  a("units", r.units);
  a("straggler", r.straggler);
  a("slowest", r.slowest);
  a("slowest_share", r.slowest_share);
  a("compute_only_ns", r.compute_only_ns);
  a.signed_number("exposed_communication", r.exposed_communication);
  a("efficiency", r.efficiency);
}

template <class Archive>
void visit(Archive& a, RoundRecord& r) {
  a("device_ns", r.times.device_ns);
  a("wall_ns", r.times.wall_ns);
  a("ranks", r.times.ranks);
  a("valid", r.valid);
  a("note", r.note);
  a("telemetry", r.telemetry);
}

template <class Archive>
void visit(Archive& a, Summary& s) {
  a("rounds", s.rounds);
  a("samples", s.samples);
  a("median_ns", s.median_ns);
  a("ci95_low_ns", s.ci95_low_ns);
  a("ci95_high_ns", s.ci95_high_ns);
  a("mad_ns", s.mad_ns);
  a("min_ns", s.min_ns);
  a("p10_ns", s.p10_ns);
  a("p90_ns", s.p90_ns);
  a("mean_ns", s.mean_ns);
  a("round_sd", s.round_sd);
  a("severe", s.severe);
  a.signed_number("drift", s.drift);
  a("flags", s.flags);
}

template <class Archive>
void visit(Archive& a, OpShare& s) {
  a("label", s.label);
  a("kind", s.kind);
  a("implementation", s.implementation);
  a("median_ns", s.median_ns);
  a("share", s.share);
  a("flop", s.flop);
  a("bytes", s.bytes);
}

template <class Archive>
void visit(Archive& a, PeakShare& p) {
  a("limit", p.limit);
  a("rate", p.rate);
  a("peak", p.peak);
  a("peak_source", p.peak_source);
  a("of_peak", p.of_peak);
  a("peak_at_clock", p.peak_at_clock);
  a("of_peak_at_clock", p.of_peak_at_clock);
  a("of_best", p.of_best);
  a("best_case", p.best_case);
  a("finding", p.finding);
}

template <class Archive>
void visit(Archive& a, Derived& d) {
  a("flop", d.flop);
  a("bytes", d.bytes);
  a("flop_per_s", d.flop_per_s);
  a("bytes_per_s", d.bytes_per_s);
  a("items_per_s", d.items_per_s);
  a("item", d.item);
  a("headline", d.headline);
  a("headline_unit", d.headline_unit);
  a("breakdown", d.breakdown);
  a.signed_number("remainder", d.remainder);
  a("energy_j", d.energy_j);
  a("energy_per_work_j", d.energy_per_work_j);
  a("collective", d.collective);
  a("ranks", d.ranks);
  a("peak", d.peak);
}

template <class Archive>
void visit(Archive& a, CaseRecord& r) {
  a("id", r.id);
  a("suite", r.c.suite);
  a("workload", r.c.workload);
  a("params", r.c.dims);
  a("recipe", r.c.recipe);
  a("modes", r.c.modes);
  a("ranks", r.c.ranks);
  a("label", r.c.label);
  a("tier", r.c.tier);
  a("cache", r.c.cache);
  a("def_hash", r.def_hash);
  a("status", r.verdict);
  a("reason", r.reason);
  a("implementation", r.implementation);
  a("choice", r.choice);
  a("workspace_bytes", r.workspace_bytes);
  a("rewrites", r.rewrites);
  a("parity", r.parity);
  a("batch", r.batch);
  a("copies", r.copies);
  a("memory_bytes", r.memory_bytes);
  a("rounds", r.rounds);
  a("summary", r.summary);
  a("derived", r.derived);
  a("rerun", r.rerun);
  a("check_s", r.check_s);
  a("time_s", r.time_s);
}

template <class Archive>
void visit(Archive& a, DeviceInfo& d) {
  a("kind", d.kind);
  a("name", d.name);
  a("units", d.units);
  a("memory_bytes", d.memory_bytes);
  a("available_bytes", d.available_bytes);
  a("cache_bytes", d.cache_bytes);
  a("properties", d.properties);
  a("libraries", d.libraries);
}

inline constexpr std::array verdicts{Verdict::pass,       Verdict::fail,       Verdict::downgraded,
                                     Verdict::not_proven, Verdict::unverified, Verdict::unsupported,
                                     Verdict::skipped,    Verdict::error};
inline constexpr std::array choices{Choice::timed, Choice::untimed, Choice::remembered, Choice::pinned};
inline constexpr std::array tiers{Tier::smoke, Tier::quick, Tier::standard, Tier::large};
inline constexpr std::array cache_modes{CacheMode::cold, CacheMode::warm, CacheMode::step};
constexpr auto& words(Verdict) { return verdicts; }
constexpr auto& words(Choice) { return choices; }
constexpr auto& words(Tier) { return tiers; }
constexpr auto& words(CacheMode) { return cache_modes; }

template <class T>
concept Word = std::is_enum_v<T>;
template <class T>
concept Whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T, class... Ts>
concept AnyOf = (std::is_same_v<T, Ts> || ...);
/// A struct that is a member of another. Whoever lists the members of further structs (visit()) adds them here.
template <class T>
inline constexpr bool is_part = AnyOf<T, Worst, OpParity, EndToEndTensor, Parity, Spread, RoundTelemetry, RankTimes,
                                      RoundRecord, Summary, OpShare, CollectiveRates, RankSpread, PeakShare, Derived>;
template <class T>
concept Part = is_part<T>;
template <class T>
concept Pairs = AnyOf<T, Dims, std::vector<std::pair<std::string, std::string>>>;

}  // namespace gpubench::record_members

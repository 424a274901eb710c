// The members of reports: JSON names and rules, listed once per struct. The writer, the reader (record_io.h) and the
// published schema (results/schema/report.v1.json) are made from these lists. Optional members are left out without a
// value and may be missing; others are required. Numbers are zero or more unless their rule differs; samples are
// checked with their round.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "harness/core/record.h"
#include "harness/report/report_json.h"

namespace gpubench::record_members {

struct Form {
  const char* pattern;
  bool (*holds)(std::string_view);
  const char* refusal;
};
inline constexpr Form case_id{"^[a-z0-9._/=,+x-]{1,200}$", is_case_id,
                              "is not a case id: expected 1 to 200 characters of a-z 0-9 . _ / = , + -"};
inline constexpr Form hex16{"^[0-9a-f]{16}$", is_definition_hash, "is not 16 characters of 0-9 a-f"};

inline constexpr Form contender_name{"^[A-Za-z0-9][A-Za-z0-9._+-]{0,39}$", is_contender_name,
                                     "is not a name of an implementation: expected 1 to 40 characters of A-Z a-z 0-9 . "
                                     "_ + -, the first a letter or digit"};

enum class Sign { not_negative, positive, any };

/// Requirements on a member beyond its type, checked by the reader and published in the schema.
struct Rule {
  const char* note = nullptr;  ///< for readers of the schema
  bool optional = false;       ///< left out if empty or 0, or if a std::optional is not set
  Sign sign = Sign::not_negative;
  std::int64_t least = 0;  ///< of whole numbers; the shortest length of a text, a list or named values
  double most = std::numeric_limits<double>::infinity();  ///< of other numbers
  std::span<const std::string_view> words{};              ///< the accepted texts
  const Form* form = nullptr;
  bool empty_texts = false;  ///< a list may contain them
};

inline constexpr std::array<std::string_view, 5> phases{"check", "timed", "recheck", "exact", "special"};
inline constexpr std::array<std::string_view, 5> checks{"off", "sample", "bitwise", "own", "full"};
inline constexpr std::array<std::string_view, 8> presets{"minimal",  "brief", "normal", "gate",
                                                         "thorough", "smoke", "quick",  "standard"};
inline constexpr Rule choice_rule{
    .note = "since 1.2; how the implementation was chosen, left out where there was nothing to choose"};

template <class Archive>
void visit(Archive& a, Worst& w) {
  a("tensor", w.tensor);
  a("index", w.index);
  a("got", w.got, {.sign = Sign::any});
  a("want", w.want, {.sign = Sign::any});
  a("bound", w.bound);
}

template <class Archive>
void visit(Archive& a, WrongPlaces& p) {
  a("tensor", p.tensor, {.least = 1});
  a("words", p.words, {.least = 1});
  a("rows", p.rows, {.least = 1});
  a("columns", p.columns, {.least = 1});
  a("column_bands", p.column_bands, {.least = 1});
  a("counts", p.counts,
    {.note = "wrong elements by band of rows and band of columns, row after row, at most 32 of each", .least = 1});
}

template <class Archive>
void visit(Archive& a, OpParity& p) {
  a("label", p.label, {.least = 1});
  a("kind", p.kind, {.least = 1});
  a("phase", p.phase, {.note = "since 1.12: exact, special", .words = phases});
  a("implementation", p.implementation);
  a("choice", p.choice, choice_rule);
  a("rejected", p.rejected,
    {.note = "since 1.2; candidates that were not chosen because their results were outside the bound, and by how much",
     .least = 1});
  a("status", p.verdict);
  a("reason", p.reason);
  a("error_over_bound", p.error_over_bound);
  a("judged", p.judged);
  a("elements", p.elements);
  a("projected", p.projected,
    {.note =
         "since 1.11; elements of outputs that were compared whole, by sums with random signs, left out without them"});
  a("projected_fault", p.projected_fault,
    {.note = "since 1.11; the smallest fault of one of these that the sums show, in units of its output's root mean "
             "square"});
  a("bad", p.bad);
  a("worst", p.worst);
  a("places", p.places, {.note = "since 1.10; where the wrong elements are, left out where there are none"});
  a("mutations", p.mutations);
  a("mutations_rejected", p.mutations_rejected);
}

template <class Archive>
void visit(Archive& a, PassedOps& p) {
  a("kind", p.kind, {.least = 1});
  a("ops", p.ops, {.least = 1});
  a("judged", p.judged);
  a("elements", p.elements);
  a("mutations", p.mutations, {.note = "all rejected"});
  a("error_over_bound", p.error_over_bound, {.note = "the largest of them"});
  a("phase", p.phase, {.note = "of that one", .words = phases});
}

template <class Archive>
void visit(Archive& a, PlanArithmetic& p) {
  constexpr Rule left_out{.optional = true};
  a("label", p.label, {.least = 1});
  a("kind", p.kind, {.least = 1});
  a("implementation", p.implementation);
  a("ops", p.ops, {.note = "of the case that have this plan", .least = 1});
  a("unit", p.unit, {.note = "what adds up the products, where it is known, or unknown", .optional = true});
  a("inputs", p.inputs, {.note = "what is multiplied of them: exact; tf32, cut; two bf16", .optional = true});
  a("products", p.products, {.note = "fused, or rounded before they are added", .optional = true});
  a("bits", p.bits, {.note = "significant bits of a running sum"});
  a("rounding", p.rounding, {.note = "of a running sum: nearest, cut", .optional = true});
  a("at_once", p.at_once, {.note = "products that are added at once"});
  a("fraction", p.fraction, {.note = "bits kept behind the leading one of the largest of them"});
  a("emptied", p.emptied, {.note = "products after which a narrow sum is added to an f32 one"});
  a("partial", p.partial, {.note = "the type of partial sums, where they have fewer bits", .optional = true});
  a("store", p.store, {.note = "how the sum is rounded to the output's type", .optional = true});
  a("denormals", p.denormals, left_out);
  a("specials", p.specials, left_out);
  a("order", p.order, {.note = "in which products are added up", .optional = true});
  a("note", p.note, {.note = "why nothing was read of the sums", .optional = true});
  a("status", p.verdict);
  a("reason", p.reason, {.note = "what is below the declared arithmetic", .optional = true});
}

template <class Archive>
void visit(Archive& a, EndToEndTensor& t) {
  a("tensor", t.tensor, {.least = 1});
  a("role", t.role, {.least = 1});
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
  a("ops", p.ops,
    {.note = "since 1.16, of a brief report: of each phase the op with the largest error, ops that did not pass, and "
             "ops with rejected candidates"});
  a("passed", p.passed, {.note = "since 1.16, of a brief report: all other ops, which passed, by kind", .least = 1});
  a("implementations", p.implementations,
    {.note = "since 1.16; of ops in passed, by label, where neither ops nor derived.breakdown names the same one",
     .least = 1});
  a("arithmetic", p.arithmetic,
    {.note = "since 1.12; what arithmetic the plans of matrix products were seen to use, each plan once", .least = 1});
  a("end_to_end", p.end_to_end,
    {.note = "since 1.7; with the full check: what a small program of several ops left of each tensor against the "
             "program in fp64, in 2-norms",
     .least = 1});
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
  a("temperature_c", t.temperature_c, {.sign = Sign::any});
  a("power_w", t.power_w);
  a("energy_j", t.energy_j);
  a("uncorrected_errors", t.uncorrected_errors);
  a("involuntary_switches", t.involuntary_switches, {.note = "since 1.3"});
  a("cpu_pressure", t.cpu_pressure,
    {.note = "since 1.3; share of the window in which some task waited for a processor"});
  a("reasons", t.reasons);
  a("rejected", t.rejected);
  a("errors", t.errors, {.note = "since 1.8; critical errors that the driver reported (Xids)", .optional = true});
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
  a("slowest_share", r.slowest_share, {.most = 1.0});
  a("compute_only_ns", r.compute_only_ns);
  a("exposed_communication", r.exposed_communication, {.sign = Sign::any, .most = 1.0});
  a("efficiency", r.efficiency);
  a("partners", r.partners, {.note = "since 1.13; with whom each rank exchanges, where they do in pairs", .least = 2});
}

template <class Archive>
void visit(Archive& a, RoundRecord& r) {
  a("device_ns", r.times.device_ns);
  a("wall_ns", r.times.wall_ns);
  a("ranks", r.times.ranks, {.note = "since 1.2", .least = 2});
  a("valid", r.valid);
  a("note", r.note);
  a("telemetry", r.telemetry, {.note = "since 1.1; what the device does not report is left out"});
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
  a("drift", s.drift, {.sign = Sign::any});
  a("flags", s.flags,
    {.note = "noisy, since 1.5: half of the 95% interval is more than 25% of the median; before: the median was above "
             "1.3 times the minimum"});
}

template <class Archive>
void visit(Archive& a, OpShare& s) {
  a("label", s.label, {.least = 1});
  a("kind", s.kind, {.least = 1});
  a("implementation", s.implementation);
  a("median_ns", s.median_ns);
  a("share", s.share, {.note = "since 1.16 left out where it is median_ns over the case's median", .optional = true});
  a("flop", s.flop);
  a("bytes", s.bytes);
}

template <class Archive>
void visit(Archive& a, MemoryPart& m) {
  a("kind", m.kind, {.least = 1});
  a("bytes", m.bytes);
}

template <class Archive>
void visit(Archive& a, PeakShare& p) {
  a("limit", p.limit, {.least = 1});
  a("rate", p.rate);
  a("peak", p.peak, {.sign = Sign::positive});
  a("peak_source", p.peak_source);
  a("of_peak", p.of_peak);
  a("peak_at_clock", p.peak_at_clock, {.sign = Sign::positive});
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
  a("remainder", d.remainder, {.sign = Sign::any});
  a("energy_j", d.energy_j);
  a("energy_per_work_j", d.energy_per_work_j, {.note = "since 1.2; per unit of the headline's work"});
  a("collective", d.collective, {.note = "since 1.2"});
  a("ranks", d.ranks, {.note = "since 1.2"});
  a("peak", d.peak,
    {.note = "since 1.1; fractions of what the device can do at most, left out where that is not known"});
}

template <class Archive>
void visit(Archive& a, Unfinished& u) {
  a("why", u.why);
  a("checked", u.checked);
  a("implementation", u.implementation);
  a("batch", u.batch);
  a("rounds", u.rounds, {.least = 1});
}

template <class Archive>
void visit(Archive& a, CaseRecord& r) {
  a("id", r.id, {.form = &case_id});
  a("suite", r.c.suite, {.least = 1});
  a("workload", r.c.workload, {.least = 1});
  a("params", r.c.dims, {.least = 1});
  a("recipe", r.c.recipe, {.least = 1});
  a("modes", r.c.modes);
  a("ranks", r.c.ranks, {.least = 1});
  a("label", r.c.label);
  a("tier", r.c.tier);
  a("cache", r.c.cache);
  a("calls", r.c.calls,
    {.note = "since 1.9; how often the list of shapes (--shapes) calls it, left out without one",
     .sign = Sign::positive});
  a("contender", r.c.contender,
    {.note = "since 1.10; the implementation under test (--impl) that ran it, left out for the device's own",
     .optional = true,
     .form = &contender_name});
  a("def_hash", r.def_hash,
    {.note = "since 1.4; digests what the id stands for: two records of one id that differ here measured different "
             "work or data",
     .form = &hex16});
  a("status", r.verdict);
  a("reason", r.reason);
  a("implementation", r.implementation);
  a("choice", r.choice, choice_rule);
  a("workspace_bytes", r.workspace_bytes, {.note = "since 1.2; the most that an op of the case asks for"});
  a("rewrites", r.rewrites,
    {.note = "what fusing put in: \"residual1+ln2 = residual_norm_forward\", with \" (gain not yet measured)\" where "
             "the device claims it so",
     .least = 1});
  a("parity", r.parity);
  a("batch", r.batch);
  a("copies", r.copies);
  a("memory_bytes", r.memory_bytes);
  a("memory", r.memory,
    {.note = "since 1.9; of a program of several ops: what its tensors take by kind, without reuse, guards and scratch",
     .least = 1});
  a("rounds", r.rounds);
  a("summary", r.summary);
  a("derived", r.derived);
  a("unfinished", r.unfinished,
    {.note =
         "since 1.14; of a case that was skipped because its run was interrupted: what had been measured by then. Its "
         "rounds say nothing about how fast the device is: too few, and not checked to the end"});
  a("rerun", r.rerun);
  a("plan_s", r.plan_s,
    {.note = "since 1.14; seconds that choosing implementations took, with trying their candidates"});
  a("check_s", r.check_s);
  a("time_s", r.time_s);
}

template <class Archive>
void visit(Archive& a, DeviceInfo& d) {
  a("kind", d.kind, {.least = 1});
  a("name", d.name);
  a("units", d.units);
  a("memory_bytes", d.memory_bytes);
  a("available_bytes", d.available_bytes);
  a("cache_bytes", d.cache_bytes);
  a("properties", d.properties);
  a("libraries", d.libraries);
}

template <class Archive>
void visit(Archive& a, CacheContext& c) {
  a("type", c.type, {.least = 1});
  a("level", c.level, {.least = 1});
  a("size", c.bytes);
  a("num_sharing", c.sharing, {.least = 1});
}

template <class Archive>
void visit(Archive& a, HostContext& h) {
  a("host_name", h.host_name);
  a("executable", h.executable);
  a("num_cpus", h.num_cpus, {.least = 1});
  a("mhz_per_cpu", h.mhz_per_cpu);
  a("cpu_scaling_enabled", h.cpu_scaling_enabled);
  a("caches", h.caches);
}

template <class Archive>
void visit(Archive& a, ShapesExcept& e) {
  a("reason", e.reason, {.least = 1});
  a("calls", e.calls, {.sign = Sign::positive});
  a("taken", e.taken, {.note = "measured without something; else not measured at all"});
}

template <class Archive>
void visit(Archive& a, ShapesContext& s) {
  a("file", s.file);
  a("format", s.format, {.least = 1});
  a("excepts", s.excepts);
}

template <class Archive>
void visit(Archive& a, CallsTotal& t) {
  a("suite", t.suite, {.note = "or all of this recipe", .least = 1});
  a("recipe", t.recipe, {.note = "with modes and ranks where they are not the usual ones", .least = 1});
  a("shapes", t.shapes, {.least = 1});
  a("calls", t.calls, {.sign = Sign::positive});
  a("ns", t.ns, {.note = "sum of calls times median, left out where a shape has no time"});
  a("low_ns", t.low_ns);
  a("high_ns", t.high_ns);
  a("missing", t.missing, {.note = "why there is no sum", .optional = true, .least = 1});
}

template <class Archive>
void visit(Archive& a, ImplementationFile& f) {
  a("name", f.name, {.form = &contender_name});
  a("digest", f.digest, {.note = "of the file's bytes", .form = &hex16});
  a("version", f.version);
  a("untried", f.untried,
    {.note = "since 1.15; by op, the calls that it takes and no case tried; left out where they were not sought"});
}

template <class Archive>
void visit(Archive& a, RunContext& r) {
  a("tool_version", r.tool_version, {.least = 1});
  a("build", r.build);
  a("argv", r.argv, {.empty_texts = true});
  a("suites", r.suites, {.least = 1});
  a("seed", r.seed);
  a("tier", r.tier, {.words = enum_names<Tier>});
  a("check", r.check, {.words = checks});
  a("deterministic", r.deterministic, {.note = "since 1.2"});
  a("arithmetic", r.arithmetic,
    {.note = "since 1.12; arithmetic below what ops declare that was accepted (--arithmetic), left out without",
     .optional = true,
     .least = 1});
  a("env", r.env);
  a("devices", r.devices, {.least = 1});
  a.time("started_at", r.started_at);
  a.time("finished_at", r.finished_at);
  a("complete", r.complete);
  a("invocation", r.invocation,
    {.note = "since 1.3; tells two runs of one build apart", .optional = true, .form = &hex16});
  a("preset", r.preset,
    {.note = "since 1.3; whose rounds were run; before 1.5 minimal, brief and normal were called smoke, quick and "
             "standard",
     .optional = true,
     .words = presets});
  a("injected", r.injected,
    {.note = "since 1.3; an injected fault: a slowdown (--inject-slowdown) or, since 1.5, a wrong result "
             "(--inject-error); left out of an honest report",
     .optional = true,
     .least = 1});
  a("locked_clock_mhz", r.locked_clock_mhz,
    {.note = "since 1.4; what the user locked the SM clock at, left out where it is free",
     .optional = true,
     .least = 1});
  a("implementations", r.implementations,
    {.note = "since 1.10; the implementations under test (--impl), left out without them", .least = 1});
  a("shapes", r.shapes, {.note = "since 1.9; the list of shapes that was run (--shapes), left out without one"});
  a("resumed", r.resumed,
    {.note = "since 1.6; how often the run was interrupted and resumed (--resume), left out where it never was",
     .optional = true,
     .least = 1});
}

/// The values of an enumeration allowed in reports.
template <NamedEnum T>
inline constexpr auto words = std::span<const T>(enum_values<T>);
template <>
inline constexpr auto words<Choice> = std::span<const Choice>(enum_values<Choice>).subspan(1);
template <class T>
concept Whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T, class... Ts>
concept AnyOf = (std::is_same_v<T, Ts> || ...);
/// Structs that are members of others. Add structs with a visit() here.
template <class T>
inline constexpr bool is_part =
    AnyOf<T, Worst, OpParity, PassedOps, EndToEndTensor, Parity, Spread, RoundTelemetry, RankTimes, RoundRecord,
          Summary, OpShare, CollectiveRates, MemoryPart, PlanArithmetic, RankSpread, PeakShare, Derived, DeviceInfo,
          CacheContext, ShapesExcept, ShapesContext, ImplementationFile, WrongPlaces, Unfinished>;
template <class T>
concept Part = is_part<T>;
template <class T>
concept Pairs = AnyOf<T, Dims, std::vector<std::pair<std::string, std::string>>>;

}  // namespace gpubench::record_members

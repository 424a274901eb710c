#include "harness/compare/invocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "harness/compare/thinned_json.h"
#include "harness/measure/statistics.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/record_reader.h"
#include "harness/report/report_reader.h"

namespace gpubench {
namespace {

// Members that say nothing about the time of a case.
constexpr std::string_view unread[] = {"benchmarks", "parity", "breakdown", "peak", "rewrites"};

std::vector<double> positive_numbers(const Node& round, const char* member) {
  std::vector<double> values = round.numbers_or_notes(member);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0.0) || !std::isfinite(values[i]))
      round.at(member).at(i).refuse("is no time: expected a finite number above 0");
  }
  return values;
}

constexpr std::string_view drift_flag = "drift";

// The times of a case over its valid rounds.
struct Times {
  std::vector<double> samples;      // ns per run of the program
  std::vector<double> log_medians;  // of the rounds
  std::vector<double> clocks;       // MHz, of rounds that tell it
  std::vector<double> pressures;    // of the processors, of rounds that tell it
  std::size_t fewest = 0;           // samples in a round
};

// One valid round: its samples are of `batch` runs each.
void add_round(const std::vector<double>& values, double batch, Times& times) {
  if (values.empty()) return;
  times.fewest = times.log_medians.empty() ? values.size() : std::min(times.fewest, values.size());
  times.log_medians.push_back(std::log(median(values) / batch));
  for (const double value : values) times.samples.push_back(value / batch);
}

void add_telemetry(const Node& telemetry, Times& times) {
  if (telemetry.has("sm_mhz")) times.clocks.push_back(telemetry.at("sm_mhz").number_or_note("median"));
  if (telemetry.has("cpu_pressure")) times.pressures.push_back(telemetry.at("cpu_pressure").number(0.0, 1.0));
}

CaseRun run_of(const Times& times, std::int64_t batch, bool drifting) {
  CaseRun run;
  run.batch = batch;
  run.log_median = std::log(median(times.samples));
  run.rounds = static_cast<int>(times.log_medians.size());
  run.samples = static_cast<int>(times.fewest);
  run.round_error = standard_deviation(times.log_medians) / std::sqrt(static_cast<double>(run.rounds));
  if (times.clocks.size() == times.log_medians.size() && median(times.clocks) > 0.0) run.sm_mhz = median(times.clocks);
  if (!times.pressures.empty()) run.cpu_pressure = median(times.pressures);
  run.drifting = drifting;
  return run;
}

// A step is as fast as the whole machine gets through it, waiting included.
bool by_the_wall(std::string_view cache) { return cache == name(CacheMode::step); }

bool has_flag(const Node& flags, std::string_view wanted) {
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags.at(i).text() == wanted) return true;
  }
  return false;
}

CaseRun run_of(const Node& node) {
  const std::int64_t batch = node.at("batch").integer(1);
  const char* clock = by_the_wall(node.at("cache").text()) ? "wall_ns" : "device_ns";
  const Node rounds = node.at("rounds");
  Times times;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const Node round = rounds.at(r);
    if (!round.at("valid").boolean()) continue;
    const std::vector<double> values = positive_numbers(round, clock);
    add_round(values, static_cast<double>(batch), times);
    if (!values.empty() && round.has("telemetry")) add_telemetry(round.at("telemetry"), times);
  }
  if (times.samples.empty()) rounds.refuse("hold no sample of a case that passed");
  return run_of(times, batch, has_flag(node.at("summary").at("flags"), drift_flag));
}

CaseRun run_of(const CaseRecord& record, const std::string& source) {
  const auto refuse = [&](std::string_view why) {
    throw ReadError(fmt::format("{}: case {}: {}", source, record.id, why));
  };
  if (record.batch < 1) refuse(fmt::format("batch is {}, expected 1 or more", record.batch));
  Times times;
  for (const RoundRecord& round : record.rounds) {
    if (!round.valid) continue;
    const std::vector<double>& values = by_the_wall(name(record.c.cache)) ? round.times.wall_ns : round.times.device_ns;
    for (const double value : values) {
      if (!(value > 0.0) || !std::isfinite(value))
        refuse(fmt::format("a sample of {} ns is no time: expected a finite number above 0", value));
    }
    add_round(values, static_cast<double>(record.batch), times);
    if (values.empty() || !round.telemetry) continue;
    if (round.telemetry->sm_mhz) times.clocks.push_back(round.telemetry->sm_mhz->median);
    if (round.telemetry->cpu_pressure) times.pressures.push_back(*round.telemetry->cpu_pressure);
  }
  if (times.samples.empty()) refuse("passed, and its rounds hold no sample");
  const std::vector<std::string>& flags = record.summary.flags;
  return run_of(times, record.batch, std::find(flags.begin(), flags.end(), drift_flag) != flags.end());
}

// Ids reach files, terminals and other programs.
std::string id_of(const Node& node) {
  std::string id = node.text();
  if (!is_case_id(id)) node.refuse("is no case id: expected 1 to 200 characters of a-z 0-9 . _ / = , + -");
  return id;
}

// So does this, in messages.
std::string hash_of(const Node& node) {
  std::string hash = node.text();
  if (!is_definition_hash(hash)) node.refuse("is no def_hash: expected 16 characters of 0-9 a-f");
  return hash;
}

MeasuredCase case_of(const Node& node) {
  MeasuredCase one;
  one.id = id_of(node.at("id"));
  one.suite = node.at("suite").text();
  one.verdict = record_members::word_of<Verdict>(node.at("status"));
  one.reason = node.at("reason").text();
  if (node.has("def_hash")) one.def_hash = hash_of(node.at("def_hash"));
  const Node derived = node.at("derived");
  one.flop = derived.number_or_note("flop");
  one.bytes = derived.number_or_note("bytes");
  one.work_per_s = derived.number_or_note("headline");
  one.unit = derived.at("headline_unit").text();
  if (one.verdict == Verdict::pass) one.run = run_of(node);
  return one;
}

void require_report(const Node& run) {
  if (run.at("schema").text() != "gpubench-report") run.at("schema").refuse("is not \"gpubench-report\"");
  const std::string version = run.at("schema_version").text();
  if (!version.starts_with("1."))
    run.at("schema_version").refuse(fmt::format("is {}, and this program reads major version 1", version));
}

Json to_json(const CaseRun& run) {
  Json json = {{"log_median", run.log_median}, {"round_error", run.round_error},
               {"rounds", run.rounds},         {"samples", run.samples},
               {"batch", run.batch},           {"drifting", run.drifting}};
  if (run.sm_mhz) json["sm_mhz"] = *run.sm_mhz;
  if (run.cpu_pressure) json["cpu_pressure"] = *run.cpu_pressure;
  return json;
}

CaseRun slim_run(const Node& node) {
  constexpr double longest = 60.0;  // e^60 ns are three billion years
  constexpr int most = 1'000'000'000;
  CaseRun run;
  run.log_median = node.at("log_median").number(-longest, longest);
  run.round_error = node.at("round_error").number(0.0, longest);
  run.rounds = static_cast<int>(node.at("rounds").integer(1, most));
  run.samples = static_cast<int>(node.at("samples").integer(1, most));
  run.batch = node.at("batch").integer(1);
  run.drifting = node.at("drifting").boolean();
  if (node.has("sm_mhz")) run.sm_mhz = node.at("sm_mhz").number(1.0, 1e6);
  if (node.has("cpu_pressure")) run.cpu_pressure = node.at("cpu_pressure").number(0.0, 1.0);
  return run;
}

void require_different_ids(const std::vector<MeasuredCase>& cases, const Node& where) {
  std::unordered_set<std::string_view> ids;
  for (const MeasuredCase& one : cases) {
    if (!ids.insert(one.id).second) where.refuse(fmt::format("hold two cases \"{}\"", one.id));
  }
}

Invocation parsed(std::string_view text, const std::string& path) {
  Invocation invocation;
  invocation.source = path;
  const StreamedArray cases{
      "gpubench", "cases", [&](const Json& element, std::size_t index) {
        invocation.cases.push_back(case_of({element, path, fmt::format("gpubench.cases[{}]", index)}));
      }};
  const Json json = parse_json(text, path, cases);
  const Node root(json, path);
  const Node context = root.at("context");
  const Node run = context.at("gpubench");
  require_report(run);
  if (root.at("gpubench").at("cases").size() != 0) root.at("gpubench").at("cases").refuse("is no array");
  require_different_ids(invocation.cases, root.at("gpubench").at("cases"));
  invocation.started_at = run.at("started_at").text();
  invocation.complete = run.at("complete").boolean();
  if (run.has("invocation")) invocation.id = run.at("invocation").text();
  if (run.has("injected")) invocation.injected = run.at("injected").text();
  invocation.setup = setup_of(context);
  return invocation;
}

}  // namespace

Invocation parse_invocation(std::string_view text, const std::string& path) {
  if (seal_of(text) != Seal::holds) (void)parse_report(text, path);
  // Half of a report's numbers are of the clock that a case is not judged by; which one stands before them.
  const Dropped dropped{unread, "cache", name(CacheMode::step), "device_ns", "wall_ns"};
  if (text.size() <= ReadLimits{}.bytes) {
    try {
      return parsed(thinned_json(text, dropped), path);
    } catch (const ReadError&) {  // members in another order, or a mistake, which the whole text has at its right place
    }
  }
  return parsed(text, path);
}

Invocation read_invocation(const std::string& path) { return parse_invocation(read_text(path), path); }

Invocation invocation_of(const Report& report, const std::string& source) {
  Invocation invocation;
  invocation.source = source;
  invocation.id = report.run.invocation;
  invocation.started_at = iso_time(report.run.started_at);
  invocation.complete = report.run.complete;
  invocation.injected = report.run.injected;
  invocation.setup = setup_of(Node(context_json(report), source));
  for (const CaseRecord& record : report.cases) {
    MeasuredCase one{record.id,
                     record.c.suite,
                     record.verdict,
                     record.reason,
                     record.def_hash.value_or(""),
                     record.derived.flop,
                     record.derived.bytes,
                     record.derived.headline,
                     record.derived.headline_unit};
    if (one.verdict == Verdict::pass) one.run = run_of(record, source);
    invocation.cases.push_back(std::move(one));
  }
  return invocation;
}

Json to_json(const Invocation& invocation) {
  Json cases = Json::array();
  for (const MeasuredCase& one : invocation.cases) {
    Json json = {{"id", one.id},     {"suite", one.suite}, {"status", name(one.verdict)}, {"reason", one.reason},
                 {"flop", one.flop}, {"bytes", one.bytes}, {"rate", one.work_per_s},      {"unit", one.unit}};
    if (!one.def_hash.empty()) json["def_hash"] = one.def_hash;
    if (one.run) json["run"] = to_json(*one.run);
    cases.push_back(std::move(json));
  }
  return {{"id", invocation.id},
          {"started_at", invocation.started_at},
          {"complete", invocation.complete},
          {"injected", invocation.injected},
          {"device", invocation.setup.device_kind},
          {"setup", to_json(invocation.setup.decisive)},
          {"notes", to_json(invocation.setup.telling)},
          {"cases", std::move(cases)}};
}

Invocation invocation_from_json(const Node& node, const std::string& source) {
  Invocation invocation;
  invocation.source = source;
  invocation.id = node.at("id").text();
  invocation.started_at = node.at("started_at").text();
  invocation.complete = node.at("complete").boolean();
  invocation.injected = node.at("injected").text();
  invocation.setup = {node.at("device").text(), facts_from_json(node.at("setup")), facts_from_json(node.at("notes"))};
  const Node cases = node.at("cases");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Node from = cases.at(i);
    MeasuredCase one{id_of(from.at("id")),
                     from.at("suite").text(),
                     record_members::word_of<Verdict>(from.at("status")),
                     from.at("reason").text(),
                     from.has("def_hash") ? hash_of(from.at("def_hash")) : "",
                     from.at("flop").number(),
                     from.at("bytes").number(),
                     from.at("rate").number(),
                     from.at("unit").text()};
    if (one.verdict == Verdict::pass) one.run = slim_run(from.at("run"));
    invocation.cases.push_back(std::move(one));
  }
  require_different_ids(invocation.cases, cases);
  return invocation;
}

}  // namespace gpubench

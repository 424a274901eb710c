#include "harness/compare/invocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "harness/compare/comparison.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"
#include "harness/report/json.h"
#include "harness/report/record_io.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

constexpr std::string_view drift_flag = "drift";

// The times of a case over its valid rounds.
struct Times {
  std::vector<double> samples;  // ns per run of the program
  std::vector<double> log_medians;
  std::vector<double> clocks;
  std::vector<double> pressures;
  std::size_t fewest = 0;
};

// A valid round; each sample is of `batch` runs.
void add_round(const std::vector<double>& values, double batch, Times& times) {
  if (values.empty()) return;
  times.fewest = times.log_medians.empty() ? values.size() : std::min(times.fewest, values.size());
  times.log_medians.push_back(std::log(median(values) / batch));
  for (const double value : values) times.samples.push_back(value / batch);
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

// `place`: of the case, for messages.
CaseRun run_of(const CaseRecord& record, const std::string& place) {
  const auto refuse = [&](std::string_view member, std::string_view why) {
    throw ReadError(fmt::format("{}.{}: {}", place, member, why));
  };
  if (record.batch < 1) refuse("batch", fmt::format("is {}, expected 1 or more", record.batch));
  Times times;
  for (std::size_t r = 0; r < record.rounds.size(); ++r) {
    const RoundRecord& round = record.rounds[r];
    if (!round.valid) continue;
    // Steps count wall time, waiting included.
    const bool by_the_wall = record.c.cache == CacheMode::step;
    const std::vector<double>& values = by_the_wall ? round.times.wall_ns : round.times.device_ns;
    const auto wrong =
        std::find_if_not(values.begin(), values.end(), [](double ns) { return ns > 0.0 && std::isfinite(ns); });
    if (wrong != values.end()) {
      refuse(fmt::format("rounds[{}].{}[{}]", r, by_the_wall ? "wall_ns" : "device_ns", wrong - values.begin()),
             fmt::format("is {}, expected a finite time above 0", *wrong));
    }
    add_round(values, static_cast<double>(record.batch), times);
    if (values.empty() || !round.telemetry) continue;
    if (round.telemetry->sm_mhz) times.clocks.push_back(round.telemetry->sm_mhz->median);
    if (!round.telemetry->cpu_pressure) continue;
    times.pressures.push_back(*round.telemetry->cpu_pressure);
    if (!(times.pressures.back() <= 1.0))
      refuse(fmt::format("rounds[{}].telemetry.cpu_pressure", r),
             fmt::format("is {}, expected 0 to 1", times.pressures.back()));
  }
  if (times.samples.empty()) refuse("rounds", "hold no sample of a case that passed");
  const std::vector<std::string>& flags = record.summary.flags;
  return run_of(times, record.batch, std::find(flags.begin(), flags.end(), drift_flag) != flags.end());
}

MeasuredCase case_of(const CaseRecord& record, const std::string& source, std::size_t index) {
  MeasuredCase one{record.id,
                   record.c.suite,
                   record.verdict,
                   record.reason,
                   record.def_hash.value_or(""),
                   record.derived.flop,
                   record.derived.bytes,
                   record.derived.headline,
                   record.derived.headline_unit};
  if (one.verdict == Verdict::pass) one.run = run_of(record, fmt::format("{}:gpubench.cases[{}]", source, index));
  return one;
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
  constexpr double longest = 60.0;  // e^60 ns is about 3.6 billion years
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

void require_different_ids(const std::vector<MeasuredCase>& cases, const std::string& place) {
  std::unordered_set<std::string_view> ids;
  for (const MeasuredCase& one : cases) {
    if (!ids.insert(one.id).second) throw ReadError(fmt::format("{}: hold two cases \"{}\"", place, one.id));
  }
}

Invocation made_of(const Report& report, std::vector<MeasuredCase> cases, const std::string& source) {
  require_different_ids(cases, source + ":gpubench.cases");
  return {source,
          report.run.invocation,
          iso_time(report.run.started_at),
          report.run.complete,
          report.run.injected,
          setup_of(report),
          std::move(cases)};
}

}  // namespace

Invocation parse_invocation(std::string_view text, const std::string& path,
                            const std::optional<std::string>& contender) {
  std::vector<MeasuredCase> cases;
  std::set<std::string> contenders;
  const Report report = parse_times(text, path, [&](const CaseRecord& record, std::size_t index) {
    if (index == 0) cases.clear();
    const std::string title = contender_title(record.c.contender);
    contenders.insert(title);
    if (!contender || title == *contender) cases.push_back(case_of(record, path, index));
  });
  const std::string known = joined(std::vector<std::string>(contenders.begin(), contenders.end()));
  if (!contender && contenders.size() > 1)
    throw ReadError(fmt::format("{}: holds the cases of several implementations, {}; name one: {}#NAME", visible(path),
                                known, visible(path)));
  if (contender && !contenders.contains(*contender))
    throw ReadError(
        fmt::format("{}: has no implementation '{}'; it has {}", visible(path), visible(*contender), known));
  Invocation made = made_of(report, std::move(cases), path);
  made.contender = contender.value_or("");
  return made;
}

NamedSource source_of(const std::string& path) {
  const std::size_t mark = path.rfind('#');
  std::error_code ignored;
  if (mark == std::string::npos || std::filesystem::exists(path, ignored)) return {path, std::nullopt};
  return {path.substr(0, mark), path.substr(mark + 1)};
}

Invocation invocation_of(const Report& report, const std::string& source) {
  std::vector<MeasuredCase> cases;
  for (const CaseRecord& record : report.cases) cases.push_back(case_of(record, source, cases.size()));
  return made_of(report, std::move(cases), source);
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
    MeasuredCase one{record_members::text_of(from.at("id"), record_members::case_id),
                     from.at("suite").text(),
                     record_members::word_of<Verdict>(from.at("status")),
                     from.at("reason").text(),
                     from.has("def_hash") ? record_members::text_of(from.at("def_hash"), record_members::hex16) : "",
                     from.at("flop").number(),
                     from.at("bytes").number(),
                     from.at("rate").number(),
                     from.at("unit").text()};
    if (one.verdict == Verdict::pass) one.run = slim_run(from.at("run"));
    invocation.cases.push_back(std::move(one));
  }
  require_different_ids(invocation.cases, source + ": its cases");
  return invocation;
}

bool one_run(const Invocation& a, const Invocation& b) {
  if (a.contender != b.contender) return false;
  if (!a.id.empty() && !b.id.empty()) return a.id == b.id;
  return a.started_at == b.started_at && a.cases.size() == b.cases.size() &&
         std::equal(a.cases.begin(), a.cases.end(), b.cases.begin(), [](const MeasuredCase& x, const MeasuredCase& y) {
           return x.id == y.id && x.run.has_value() == y.run.has_value() &&
                  (!x.run || x.run->log_median == y.run->log_median);
         });
}

void refuse_repeats(std::span<const Invocation> invocations, std::string_view flag) {
  for (std::size_t i = 0; i < invocations.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (one_run(invocations[i], invocations[j]))
        throw UsageError(fmt::format("{}{}{} and {} are one report; give reports of different runs", flag,
                                     flag.empty() ? "" : ": ", visible(invocations[j].source),
                                     visible(invocations[i].source)));
    }
  }
}

}  // namespace gpubench

#include "harness/report/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/record_io.h"

namespace gpubench {
namespace {

constexpr double ns_per_us = 1000.0;

// Members common to the entries of a case, with Google Benchmark's names.
Json entry(const CaseRecord& record, int family, std::string_view suffix, const char* run_type) {
  return {{"name", record.key() + std::string(suffix)},
          {"family_index", family},
          {"per_family_instance_index", 0},
          {"run_name", record.key()},
          {"run_type", run_type},
          {"threads", 1}};
}

void add_time(Json& entry, std::int64_t iterations, double device_ns, double wall_ns) {
  entry["iterations"] = iterations;
  entry["real_time"] = device_ns / ns_per_us;
  entry["cpu_time"] = wall_ns / ns_per_us;
  entry["time_unit"] = "us";
}

void add_rates(Json& entry, const CaseRecord& record) {
  const Derived& rates = record.derived;
  for (const auto& [key, rate] : {std::pair{"bytes_per_second", rates.bytes_per_s},
                                  {"items_per_second", rates.items_per_s},
                                  {"flop_per_second", rates.flop_per_s}}) {
    if (std::isfinite(rate)) entry[key] = rate;
  }
  if (!record.c.label.empty()) entry["label"] = record.c.label;
}

double per_run(std::span<const double> interval_ns, std::int64_t batch) {
  return median(interval_ns) / static_cast<double>(batch);
}

std::vector<const RoundRecord*> valid_rounds(const CaseRecord& record) {
  std::vector<const RoundRecord*> valid;
  for (const RoundRecord& round : record.rounds) {
    if (round.valid) valid.push_back(&round);
  }
  return valid;
}

void add_benchmarks(Json& benchmarks, const CaseRecord& record, int family) {
  const std::vector<const RoundRecord*> rounds = valid_rounds(record);
  const auto repetitions = static_cast<std::int64_t>(rounds.size());
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const RoundTimes& times = rounds[r]->times;
    Json round = entry(record, family, "", "iteration");
    round["repetitions"] = repetitions;
    round["repetition_index"] = r;
    add_time(round, static_cast<std::int64_t>(times.device_ns.size()) * record.batch,
             per_run(times.device_ns, record.batch), per_run(times.wall_ns, record.batch));
    benchmarks.push_back(std::move(round));
  }
  Json middle = entry(record, family, "_median", "aggregate");
  middle["repetitions"] = repetitions;
  middle["aggregate_name"] = "median";
  middle["aggregate_unit"] = "time";
  add_time(middle, record.summary.rounds, record.summary.median_ns, record.summary.median_ns);
  add_rates(middle, record);
  benchmarks.push_back(std::move(middle));
}

// A pass without samples is a case, but not a benchmark.
bool has_times(const CaseRecord& record) {
  const std::vector<const RoundRecord*> rounds = valid_rounds(record);
  return record.verdict == Verdict::pass && record.batch > 0 && !rounds.empty() &&
         std::none_of(rounds.begin(), rounds.end(), [](const RoundRecord* round) {
           return round->times.device_ns.empty() || round->times.wall_ns.empty();
         });
}

}  // namespace

int Totals::count(Verdict verdict) const {
  const auto found = by_verdict.find(verdict);
  return found == by_verdict.end() ? 0 : found->second;
}

void Totals::add(const CaseRecord& record) {
  ++by_verdict[record.verdict];
  ++cases;
  check_s += record.check_s;
  time_s += record.time_s;
}

Totals totals_of(std::span<const CaseRecord> records) {
  Totals totals;
  for (const CaseRecord& record : records) totals.add(record);
  return totals;
}

Json totals_json(const Totals& totals) {
  Json json = {{"cases", totals.cases}};
  for (const Verdict verdict : enum_values<Verdict>) json[std::string(name(verdict))] = totals.count(verdict);
  json["check_s"] = totals.check_s;
  json["time_s"] = totals.time_s;
  return json;
}

Json google_context_json(const Report& report) {
  Json context = {{"date", iso_time(report.run.started_at)}};
  context.update(record_members::Writer::written(report.host));
  context["load_avg"] = report.host.load_avg;
  context["library_build_type"] = "release";  // of the measuring library; gpubench's is in gpubench.build
  context["json_schema_version"] = 1;         // Google Benchmark's
  return context;
}

Json context_json(const Report& report) {
  Json context = google_context_json(report);
  context["gpubench"] = {{"schema", report_schema}, {"schema_version", report_schema_version}};
  context["gpubench"].update(record_members::Writer::written(report.run));
  return context;
}

Json benchmarks_json(std::span<const CaseRecord> records) {
  Json benchmarks = Json::array();
  int family = 0;
  for (const CaseRecord& record : records) {
    if (has_times(record)) add_benchmarks(benchmarks, record, family++);
  }
  return benchmarks;
}

namespace {

Json without_lists(const Report& report) {
  Json results = {{"cases", Json::array()}, {"totals", totals_json(totals_of(report.cases))}};
  if (Json calls = calls_totals_json(report.cases); !calls.empty()) results["calls_totals"] = std::move(calls);
  return {{"context", context_json(report)}, {"benchmarks", Json::array()}, {"gpubench", std::move(results)}};
}

}  // namespace

Json report_json(const Report& report) {
  Json document = without_lists(report);
  document["benchmarks"] = benchmarks_json(report.cases);
  for (const CaseRecord& record : report.cases) document["gpubench"]["cases"].push_back(to_json(record));
  return document;
}

std::string report_json_text(const Report& report, Detail detail) {
  std::string benchmarks, cases;
  const auto add = [](std::string& lines, const Json& one) { lines += (lines.empty() ? "\n" : ",\n") + dump(one); };
  for (const Json& one : benchmarks_json(report.cases)) add(benchmarks, one);
  for (const CaseRecord& record : report.cases) add(cases, to_json(detail == Detail::brief ? brief(record) : record));
  std::string text = dump(without_lists(report), 1);
  // JSON strings contain no newline, so each match is the list itself.
  for (const auto& [place, lines] :
       {std::pair{std::string("\n \"benchmarks\": ["), &benchmarks}, {"\n  \"cases\": [", &cases}})
    text.insert(text.find(place) + place.size(), *lines);
  return with_digest(std::move(text), 1);
}

Json calls_totals_json(std::span<const CaseRecord> records) {
  Json totals = Json::array();
  for (const CallsTotal& total : calls_totals(records)) totals.push_back(record_members::Writer::written(total));
  return totals;
}

std::string iso_time(std::time_t time) {
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &utc)};
}

using record_members::Reader;
using record_members::Writer;

Json to_json(const CaseRecord& record) { return Writer::written(record); }

namespace {

// The id is printed and written to files.
void require_identity(const Node& node, const CaseRecord& record) {
  std::string id;
  try {
    id = record.c.id();
  } catch (const ProgramError& e) {
    node.refuse(e.what());
  }
  if (id != record.id) node.at("id").refuse(fmt::format("does not match its parts, which make {}", id));
}

// As derive() computes them.
void add_missing_shares(const Node& node, CaseRecord& record) {
  std::vector<OpShare>& ops = record.derived.breakdown;
  for (std::size_t i = 0; i < ops.size() && record.summary.median_ns > 0.0; ++i) {
    if (!node.at("derived").at("breakdown").at(i).has("share"))
      ops[i].share = ops[i].median_ns / record.summary.median_ns;
  }
}

}  // namespace

CaseRecord record_from_json(const Node& node, LeftOut left_out) {
  CaseRecord record = Reader::read<CaseRecord>(node, nullptr, left_out);
  require_identity(node, record);
  add_missing_shares(node, record);
  return record;
}

CaseRecord record_from_json(const Node& node, Problems& problems) {
  const std::size_t before = problems.count();
  CaseRecord record = Reader::read<CaseRecord>(node, &problems);
  if (problems.count() != before) return record;
  problems.attempt([&] { require_identity(node, record); });
  add_missing_shares(node, record);
  return record;
}

Json to_json(const DeviceInfo& device) { return Writer::written(device); }

Json to_json(const RoundTelemetry& telemetry) { return Writer::written(telemetry); }

DeviceInfo device_from_json(const Node& node) { return Reader::read<DeviceInfo>(node); }

DeviceInfo device_from_json(const Node& node, Problems& problems) { return Reader::read<DeviceInfo>(node, &problems); }

}  // namespace gpubench

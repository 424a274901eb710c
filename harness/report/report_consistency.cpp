// check_meaning(): consistency between cases, and of redundant members.
#include "harness/report/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

void check_ids(const Report& report, const Node& cases, Problems& problems) {
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const auto [earlier, is_new] = first.emplace(report.cases[i].key(), i);
    if (!is_new) {
      problems.add(cases.at(i).at("id").complaint(
          fmt::format("is \"{}\", as is cases[{}]", visible(report.cases[i].key()), earlier->second)));
    }
  }
}

void check_run(const Report& report, const Node& root, Problems& problems) {
  const RunContext& run = report.run;
  const bool all = std::find(run.suites.begin(), run.suites.end(), "all") != run.suites.end();
  if (iso_time(run.started_at) != root.at("context").at("date").text())
    problems.add(root.at("context").at("date").complaint("is not when the run started"));
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const CaseRecord& record = report.cases[i];
    const Node place = root.at("gpubench").at("cases").at(i);
    if (!all && std::find(run.suites.begin(), run.suites.end(), record.c.suite) == run.suites.end())
      problems.add(place.at("suite").complaint("is not among the suites of the run"));
    const bool unchecked = run.check == "off";
    if (unchecked && record.verdict == Verdict::pass)
      problems.add(place.at("status").complaint("is pass, although nothing was checked (check: off)"));
    if (!unchecked && record.verdict == Verdict::unverified)
      problems.add(place.at("status").complaint("is unverified, although the check was on"));
  }
}

// Expected members with kind and value; additional members are allowed.
void check_members(const Json& expected, const Node& node, std::string_view source, Problems& problems) {
  for (const auto& [key, value] : expected.items()) {
    problems.attempt([&, key = key, &value = value] {
      const Node place = node.at(key);
      if (value.is_number_float()) {
        const double told = place.number();
        if (!nearly(told, value.get<double>()))
          place.refuse(fmt::format("is {}, but {} {}", told, source, value.get<double>()));
      } else if (value.is_number()) {
        const std::int64_t told = place.integer();
        if (told != value.get<std::int64_t>())
          place.refuse(fmt::format("is {}, but {} {}", told, source, value.get<std::int64_t>()));
      } else if (place.text() != value.get_ref<const std::string&>()) {
        place.refuse(fmt::format("is not \"{}\"", visible(value.get_ref<const std::string&>())));
      }
    });
  }
}

// Identifies an entry of `benchmarks`: Google Benchmark gives all rounds of a case one name.
std::string key_of(const Node& entry) {
  const std::string name = entry.at("name").text();
  const std::string type = entry.at("run_type").text();
  if (type != "iteration") return name + " " + type;
  return fmt::format("{} {} {}", name, type, entry.at("repetition_index").integer());
}

void check_benchmarks(const Report& report, const Node& root, Problems& problems) {
  const Json expected = benchmarks_json(report.cases);
  std::map<std::string, const Json*> missing;
  for (const Json& entry : expected) missing[key_of({entry, ""})] = &entry;
  const std::map<std::string, const Json*> known = missing;
  const Node benchmarks = root.at("benchmarks");
  for (std::size_t i = 0; i < benchmarks.length(); ++i) {
    problems.attempt([&] {
      const Node entry = benchmarks.at(i);
      const std::string key = key_of(entry);
      if (!known.contains(key))
        entry.refuse(fmt::format("is \"{}\", which is neither a round nor a median of a passing case", visible(key)));
      if (missing.erase(key) == 0) entry.refuse(fmt::format("is \"{}\" again", visible(key)));
      check_members(*known.at(key), entry, "its case makes", problems);
    });
  }
  for (const auto& [key, entry] : missing)
    problems.add(benchmarks.complaint(fmt::format("lacks \"{}\"", visible(key))));
}

void check_calls_totals(const Report& report, const Node& results, Problems& problems) {
  const Json expected = calls_totals_json(report.cases);
  const std::size_t told = results.has("calls_totals") ? results.at("calls_totals").length() : 0;
  if (told != expected.size())
    results.refuse(fmt::format("has {} calls_totals, but the cases make {}", told, expected.size()));
  for (std::size_t i = 0; i < told; ++i)
    check_members(expected[i], results.at("calls_totals").at(i), "the cases make", problems);
}

}  // namespace

void check_meaning(const Report& report, const Node& root, Problems& problems) {
  const Node cases = root.at("gpubench").at("cases");
  const std::size_t before = problems.count();
  check_run(report, root, problems);
  check_ids(report, cases, problems);
  for (std::size_t i = 0; i < report.cases.size(); ++i) check_case(report.cases[i], cases.at(i), problems);
  check_members(totals_json(totals_of(report.cases)), root.at("gpubench").at("totals"), "the cases make", problems);
  problems.attempt([&] { check_calls_totals(report, root.at("gpubench"), problems); });
  // Errors in cases would be reported twice.
  if (problems.count() == before) check_benchmarks(report, root, problems);
}

}  // namespace gpubench

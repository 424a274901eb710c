// Hostile text in every field of a report and every sink: it stays text, and round trips.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/sinks.h"

namespace gpubench {
namespace {

constexpr const char* marker = "qzword";

// The second case failed with another reason than its op, so both are printed. The third has none.
Json document() {
  Report report = holding_report();
  report.cases.pop_back();
  report.run.suites.pop_back();
  report.cases[1].reason = "different";
  return report_json(report);
}

std::vector<StringField> open_fields() {
  const Json whole = document();
  std::vector<StringField> open;
  for (const StringField& field : string_fields(whole)) {
    if (report_with(whole, field, marker)) open.push_back(field);
  }
  return open;
}

std::vector<std::string> payloads() {
  std::vector<std::string> all = hostile_texts();
  all.insert(all.end(), broken_texts().begin(), broken_texts().end());
  return all;
}

struct Tally {
  int checks = 0;
  int read_back = 0;
  std::set<std::string> complaints;
};

struct Harmless {
  Harmless(const Sink& sink, const Report& report)
      : output(sink.written(report)), shows_it(sink.read(output).find(marker) != std::string::npos) {}
  std::string output;
  bool shows_it;
};

void try_one(const Sink& sink, const std::string& where, const Report& report, const Harmless& harmless,
             const std::string& text, Tally& tally) {
  const std::string output = sink.written(report);
  ++tally.checks;
  // An empty text may omit its surroundings.
  const std::string problem =
      output == harmless.output ? "" : sink.problem(output, text.empty() ? output : harmless.output);
  if (!problem.empty()) tally.complaints.insert(sink.name + ", " + where + ": " + problem.substr(0, 200));
  constexpr std::size_t longest_shown = 1000;
  if (text.empty() || text.size() > longest_shown || !harmless.shows_it) return;
  ++tally.read_back;
  const std::string read = sink.read(output);
  const std::vector<std::string> ways = sink.expected(text);
  if (std::none_of(ways.begin(), ways.end(),
                   [&](const std::string& way) { return read.find(way) != std::string::npos; }))
    tally.complaints.insert(sink.name + ", " + where + " does not come back: " + printable(text).substr(0, 200));
}

void expect_none(const Tally& tally) {
  for (const std::string& complaint : tally.complaints) ADD_FAILURE() << complaint;
}

TEST(Escaping, EveryFieldOfAReportThatTakesTextTakesAnyAndTheOthersSayNo) {
  const std::vector<StringField> open = open_fields();
  std::set<std::string> places;
  for (const StringField& field : open) places.insert(field.text());
  // A place in each struct, to check that the walk finds them.
  for (const char* place :
       {"/context/host_name", "/context/gpubench/devices/0/name", "/context/gpubench/env/OMP_NUM_THREADS",
        "/context/gpubench/env/OMP_NUM_THREADS (name)", "/context/gpubench/devices/0/libraries/oneDNN (name)",
        "/context/gpubench/argv/0", "/gpubench/cases/0/label", "/gpubench/cases/1/reason",
        "/gpubench/cases/1/parity/ops/1/worst/tensor", "/gpubench/cases/0/rounds/0/telemetry/reasons/0",
        "/gpubench/cases/0/derived/breakdown/0/label", "/gpubench/cases/0/derived/peak/peak_source",
        "/gpubench/cases/1/rerun"})
    EXPECT_EQ(places.count(place), 1U) << place;
  for (const char* place : {"/gpubench/cases/0/status", "/gpubench/cases/0/tier", "/context/gpubench/started_at"})
    EXPECT_EQ(places.count(place), 0U) << place;
  EXPECT_GE(open.size(), 60U);
}

// 30 s: every text field, at least forty texts, every sink.
TEST(Escaping, HostileTextInAnyFieldStaysTextInEverySink) {
  const Json whole = document();
  const std::vector<std::string> texts = payloads();
  ASSERT_GE(texts.size(), 40U);
  Tally tally;
  const std::vector<StringField> fields = open_fields();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Report harmless = *report_with(whole, fields[f], marker);
    std::vector<Harmless> outputs;
    for (const Sink& sink : sinks()) outputs.emplace_back(sink, harmless);
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const std::optional<Report> report = report_with(whole, fields[f], texts[t]);
      if (!report) continue;
      // Each sink meets each field and each text, each field each text, but not in all combinations.
      for (std::size_t s = 0; s < sinks().size(); ++s) {
        if ((f + t + s) % 4 == 0) try_one(sinks()[s], fields[f].text(), *report, outputs[s], texts[t], tally);
      }
    }
  }
  EXPECT_GE(tally.checks, 1500);
  EXPECT_GE(tally.read_back, 1500);
  RecordProperty("checks", tally.checks);
  RecordProperty("read_back", tally.read_back);
  expect_none(tally);
}

// Rounds of an interrupted case are kept, but no rate is derived from them.
TEST(Sinks, TellNothingOfTheRoundsOfAnUnfinishedCase) {
  Report with = sample_report();
  with.run.complete = false;
  ASSERT_TRUE(with.cases.back().unfinished);
  Report without = with;
  for (CaseRecord& record : without.cases) record.unfinished.reset();
  for (const Sink& sink : sinks()) {
    if (sink.name.starts_with("report.json")) continue;
    EXPECT_EQ(sink.written(with), sink.written(without)) << sink.name;
  }
}

// Sinks must not rely on the reader's checks.
TEST(Escaping, HostileIdsStayTextToo) {
  using Set = void (*)(CaseRecord&, const std::string&);
  const std::vector<std::pair<const char*, Set>> fields{
      {"id", [](CaseRecord& r, const std::string& t) { r.id = t; }},
      {"suite", [](CaseRecord& r, const std::string& t) { r.c.suite = t; }},
      {"workload", [](CaseRecord& r, const std::string& t) { r.c.workload = t; }},
      {"recipe", [](CaseRecord& r, const std::string& t) { r.c.recipe = t; }},
      {"mode", [](CaseRecord& r, const std::string& t) { r.c.modes = {t}; }},
      {"dimension", [](CaseRecord& r, const std::string& t) {
         r.c.dims = {{t, 1}};
       }}};
  Tally tally;
  for (const auto& [where, set] : fields) {
    for (std::size_t c = 0; c < 3; ++c) {
      Report harmless = holding_report();
      set(harmless.cases[c], marker);
      for (const Sink& sink : sinks()) {
        const Harmless usual(sink, harmless);
        for (const std::string& text : payloads()) {
          Report report = holding_report();
          set(report.cases[c], text);
          try_one(sink, where, report, usual, text, tally);
        }
      }
    }
  }
  EXPECT_GE(tally.checks, 1500);
  expect_none(tally);
}

// Each sink's check must reject unescaped text.
TEST(Escaping, TheChecksSeeTextThatWasNotEscaped) {
  Report report = holding_report();
  report.cases[1].reason = marker;
  report.cases[1].c.label = marker;
  report.run.devices[0].name = marker;
  const std::map<std::string, std::string> harmful{{"terminal", "\x1b[2J"},
                                                   {"terminal, in colour", "\n::error::x"},
                                                   {"JUnit", "<x/>"},
                                                   {"Markdown", "a|b"},
                                                   {"page", "<b>x</b>"},
                                                   {"GitHub", "x\n::error::y"},
                                                   {"CSV", "a,b"},
                                                   {"Prometheus", "\"} 1\n"},
                                                   {"report.json", "\",\"a\":\"b"}};
  for (const Sink& sink : sinks()) {
    const auto raw = harmful.find(sink.name);
    if (raw == harmful.end()) continue;
    const std::string harmless = sink.written(report);
    std::string output = harmless;
    ASSERT_NE(output.find(marker), std::string::npos) << sink.name;
    output.replace(output.find(marker), std::string(marker).size(), raw->second);
    std::string problem;
    try {
      problem = sink.problem(output, harmless);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    EXPECT_NE(problem, "") << sink.name;
  }
}

}  // namespace
}  // namespace gpubench

#include <gtest/gtest.h>

#include <functional>

#include "harness/compare/baseline.h"
#include "harness/compare/comparison.h"
#include "harness/compare/gate.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/report/report_schema.h"

namespace gpubench {
namespace {

constexpr auto created = "2026-11-21T02:34:19+00:00";

Json noise() { return to_json(noise_of(side_of({1000, 1010, 1005}), created)); }

Json baseline() {
  std::vector<Invocation> runs = side_of({1000, 1010});
  runs[0].cases[0].run->sm_mhz = 1755.0;
  runs[0].cases[0].run->cpu_pressure = 0.25;
  return to_json(make_baseline("main", created, runs, noise_of(runs, created)));
}

// A slower case, one only in the candidate, one that failed there, and another machine.
Json gate() {
  std::vector<Invocation> before, after;
  for (int run = 0; run < 3; ++run) {
    CaseRecord failed = timed_record("wrong", 1000);
    failed.verdict = Verdict::fail;
    failed.reason = "2 of 64 elements outside their bound";
    before.push_back(read_back(
        timed_report({timed_record("a", 1000 + run), timed_record("wrong", 1000), timed_record("gone", 9)}, run)));
    after.push_back(
        read_back(timed_report({timed_record("a", 1100 + run), failed, timed_record("new", 1000)}, 9 + run)));
  }
  GateResult result = run_gate(before, after, {});
  result.refused.push_back({"device.name", "A", "B"});
  return gate_json(result, 1);
}

Json comparison() {
  const std::vector<Invocation> a = side_of({1000, 1010}), b = side_of({1100, 1110});
  const LabelledComparison one{{"A", {"a.json"}, "A Processor"}, {"B", {"b.json"}, "A Processor"}, compare(a, b, {})};
  return comparison_json({&one, 1});
}

struct Document {
  const char* schema;
  std::function<Json()> written;
};
const Document documents[] = {{"noise.v1.json", noise},
                              {"baseline.v1.json", baseline},
                              {"gate.v1.json", gate},
                              {"comparison.v1.json", comparison}};

TEST(CompareSchemas, HoldForWhatIsWritten) {
  for (const Document& document : documents) EXPECT_EQ(schema_errors(document.written(), document.schema), "");
}

TEST(CompareSchemas, AllowNoMemberThatTheyDoNotName) {
  for (const Document& document : documents) {
    Json json = document.written();
    json["surprise"] = 1;
    EXPECT_NE(schema_errors(json, document.schema), "") << document.schema;
  }
}

TEST(CompareSchemas, AskForEveryMemberOfTheDocument) {
  for (const Document& document : documents) {
    const Json whole = document.written();
    for (const auto& member : whole.items()) {
      if (document.schema == std::string("baseline.v1.json") && member.key() == "noise") continue;
      Json json = whole;
      json.erase(member.key());
      EXPECT_NE(schema_errors(json, document.schema), "") << document.schema << ": " << member.key();
    }
  }
}

TEST(CompareSchemas, LookIntoCases) {
  Json json = noise();
  json["cases"].begin()->at("runs") = 1;
  EXPECT_NE(schema_errors(json, "noise.v1.json"), "");
  json = baseline();
  json["invocations"][0]["cases"][0]["run"]["batch"] = 0.5;
  EXPECT_NE(schema_errors(json, "baseline.v1.json"), "");
  json = gate();
  json["cases"][0]["verdict"] = "fine";
  EXPECT_NE(schema_errors(json, "gate.v1.json"), "");
  json = comparison();
  json["comparisons"][0]["cases"][0]["speed"]["ratio"] = 0;
  EXPECT_NE(schema_errors(json, "comparison.v1.json"), "");
}

}  // namespace
}  // namespace gpubench

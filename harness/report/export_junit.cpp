#include "harness/report/export.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/report/console.h"
#include "harness/report/grouping.h"
#include "harness/report/record_text.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

std::string attribute(std::string_view key, std::string_view value) {
  return fmt::format(" {}=\"{}\"", key, xml_text(value));
}

// The schema's pattern for times of suites takes digits and a point, no exponent.
std::string time_attribute(double seconds) { return fmt::format(" time=\"{:.9f}\"", seconds); }

struct Counts {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  double time_s = 0.0;

  void add(const JUnitCase& one) {
    ++tests;
    failures += one.element == JUnitElement::failure ? 1 : 0;
    errors += one.element == JUnitElement::error ? 1 : 0;
    skipped += one.element == JUnitElement::skipped ? 1 : 0;
    time_s += one.time_s;
  }
  [[nodiscard]] std::string text() const {
    return fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"{}\"", tests, failures, errors);
  }
};

std::string element_text(const JUnitCase& one) {
  if (one.element == JUnitElement::none) return "";
  if (one.element == JUnitElement::skipped) return "      <skipped" + attribute("message", one.message) + "/>\n";
  const char* name = one.element == JUnitElement::failure ? "failure" : "error";
  std::string text = fmt::format("      <{}{}{}", name, attribute("type", one.type), attribute("message", one.message));
  return text + (one.text.empty() ? "/>\n" : fmt::format(">{}</{}>\n", xml_lines(one.text), name));
}

std::string case_text(const JUnitCase& one) {
  std::string inside = element_text(one);
  if (!one.system_out.empty()) inside += fmt::format("      <system-out>{}</system-out>\n", xml_lines(one.system_out));
  const std::string start =
      "    <testcase" + attribute("classname", one.suite) + attribute("name", one.name) + time_attribute(one.time_s);
  return inside.empty() ? start + "/>\n" : start + ">\n" + inside + "    </testcase>\n";
}

std::string suite_text(const ItemGroup<JUnitCase>& suite, const JUnitDocument& document) {
  Counts counts;
  for (const JUnitCase* one : suite.items) counts.add(*one);
  std::string text =
      "  <testsuite" + attribute("name", suite.key) + counts.text() + fmt::format(" skipped=\"{}\"", counts.skipped);
  if (document.with_times) text += time_attribute(counts.time_s);
  if (!document.timestamp.empty()) text += attribute("timestamp", document.timestamp);
  if (!document.host_name.empty()) text += attribute("hostname", document.host_name);
  text += ">\n    <properties>\n";
  for (const auto& [key, value] : document.properties)
    text += "      <property" + attribute("name", key) + attribute("value", value) + "/>\n";
  text += "    </properties>\n";
  for (const JUnitCase* one : suite.items) text += case_text(*one);
  return text + "  </testsuite>\n";
}

JUnitElement element_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return JUnitElement::none;
    case Verdict::fail:
    case Verdict::downgraded:
    case Verdict::not_proven: return JUnitElement::failure;
    case Verdict::error: return JUnitElement::error;
    case Verdict::unverified:
    case Verdict::unsupported:
    case Verdict::skipped: return JUnitElement::skipped;
  }
  return JUnitElement::error;
}

std::string reason_of(const CaseRecord& record) {
  if (!record.reason.empty()) return record.reason;
  return record.verdict == Verdict::unverified ? "--check off" : "no reason was recorded";
}

double seconds_of(const CaseRecord& record) {
  const double seconds = record.check_s + record.time_s;
  return std::isfinite(seconds) ? seconds : 0.0;
}

JUnitCase test_of(const CaseRecord& record) {
  ConsoleStyle style;
  style.utf8 = true;
  style.verbosity = 1;
  JUnitCase test{
      record.c.suite, record.id, seconds_of(record), element_of(record.verdict), std::string(name(record.verdict)), ""};
  if (test.element == JUnitElement::skipped) test.message = fmt::format("{}: {}", test.type, reason_of(record));
  if (went_wrong(record.verdict)) {
    test.message = reason_of(record);
    test.text = "\n" + failures_text({&record, 1}, style);
  }
  if (record.summary.rounds > 0) test.system_out = "\n" + result_line(record, style);
  return test;
}

}  // namespace

std::string junit_document_text(const JUnitDocument& document) {
  Counts all;
  for (const JUnitCase& one : document.cases) all.add(one);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", document.name) +
                     all.text() + (document.with_times ? time_attribute(all.time_s) : "") + ">\n";
  for (const auto& suite : grouped(document.cases, [](const JUnitCase& one) { return one.suite; }))
    text += suite_text(suite, document);
  return text + "</testsuites>\n";
}

std::string junit_text(const Report& report) {
  const RunContext& run = report.run;
  JUnitDocument document{"gpubench"};
  document.timestamp = iso_time(run.started_at).substr(0, 19);  // the common readers take no time zone
  document.host_name = report.host.host_name;
  document.properties = {{"tool_version", run.tool_version},
                         {"tier", run.tier},
                         {"preset", run.preset},
                         {"check", run.check},
                         {"seed", fmt::format("{}", run.seed)},
                         {"complete", run.complete ? "true" : "false"}};
  const std::string unreliable = unreliable_text(report.cases);
  document.properties.emplace_back("timings", unreliable.empty() ? "reliable" : unreliable);
  for (const DeviceInfo& device : run.devices) document.properties.emplace_back("device", device.name);
  for (const auto& [key, value] : run.env) document.properties.emplace_back("env." + key, value);
  for (const CaseRecord& record : report.cases) document.cases.push_back(test_of(record));
  return junit_document_text(document);
}

}  // namespace gpubench

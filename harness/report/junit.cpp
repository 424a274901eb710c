#include "harness/report/junit.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/report/console.h"
#include "harness/report/junit_document.h"
#include "harness/report/reliability_text.h"

namespace gpubench {
namespace {

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

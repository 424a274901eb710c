#include "harness/report/export.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "harness/core/backend.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

// One text must not use the space of all other rows.
constexpr std::size_t max_cell_bytes = 2000;

std::string cell(std::string_view text) { return markdown_cell(shortened(text, max_cell_bytes)); }

std::string head_of(const Report& report) {
  const RunContext& run = report.run;
  const Totals totals = totals_of(report.cases);
  std::string text =
      fmt::format("### gpubench: {}\n\n{} of {} cases{}\n\n",
                  cell(verdict_with_reliability(verdict_word_of_run(report.cases, run.complete), report.cases)),
                  cell(counts_text(totals)), totals.cases, run.complete ? "" : "; interrupted, this report is partial");
  for (const std::string& line : untried_lines(run)) text += fmt::format("- untried: {}\n", cell(line));
  for (const DeviceInfo& device : run.devices) {
    const std::string libraries = libraries_text(device);
    text += fmt::format("- {}, {}{}{}\n", cell(device.name), units_text(device), libraries.empty() ? "" : ", ",
                        cell(libraries));
    if (const std::string limited = cpu_isa_text(device); !limited.empty())
      text += fmt::format("- {}\n", cell(limited));
  }
  text +=
      fmt::format("- gpubench {}, tier {}, check {}, seed {}, on {} at {}\n", cell(run.tool_version), cell(run.tier),
                  cell(run.check), run.seed, cell(report.host.host_name), cell(iso_time(run.started_at)));
  if (!run.injected.empty()) text += fmt::format("- a fault was injected: {}\n", cell(run.injected));
  if (!report.cases.empty())
    text += "\n| verdict | rate | time | ±95% | err/bound | case |\n| --- | ---: | ---: | ---: | ---: | --- |\n";
  return text;
}

std::string row_of(const CaseRecord& record) {
  const Summary& s = record.summary;
  const bool timed = s.rounds > 0 && s.median_ns > 0.0;
  std::string row = fmt::format("| {} | {} | {} | {} | {} | {}", verdict_word(record.verdict),
                                timed ? cell(rate_text_of(record)) : "-", timed ? format_time_ns(s.median_ns) : "-",
                                timed ? cell(format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns)) : "-",
                                error_text(record.parity), cell(record.key()));
  if (record.verdict != Verdict::pass && !record.reason.empty()) row += "<br>" + cell(record.reason);
  if (went_wrong(record.verdict) && !record.rerun.empty())
    row += fmt::format("<br><code>{}</code>", cell(record.rerun));
  return row + " |\n";
}

}  // namespace

std::string with_rows(std::string head, std::size_t count, const std::function<std::string(std::size_t)>& row,
                      std::size_t max_bytes) {
  constexpr std::size_t spare = 200;  // for the line with the number of rows left out
  if (head.size() > max_bytes) {
    const std::size_t end = max_bytes == 0 ? std::string::npos : head.rfind('\n', max_bytes - 1);
    return head.substr(0, end == std::string::npos ? 0 : end + 1);
  }
  std::string text = std::move(head);
  std::size_t rows = 0;
  for (; rows < count; ++rows) {
    const std::string next = row(rows);
    if (text.size() + next.size() + spare > max_bytes) break;
    text += next;
  }
  const std::string rest = rows < count ? fmt::format("\n{} more cases are left out here.\n", count - rows) : "";
  return text.size() + rest.size() <= max_bytes ? text + rest : text;
}

std::string markdown_text(const Report& report, std::size_t limit_bytes) {
  const std::vector<const CaseRecord*> order = worst_first(report.cases);
  return with_rows(
      head_of(report), order.size(), [&](std::size_t i) { return row_of(*order[i]); }, limit_bytes);
}

namespace {

constexpr std::size_t max_annotations = 9;
constexpr std::size_t max_message_bytes = 4096;

std::string command(AnnotationKind kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind == AnnotationKind::error ? "error" : "warning", github_property(title),
                     github_message(message));
}

}  // namespace

std::string annotations_text(std::span<const Annotation> annotations, std::string_view rest) {
  std::string text;
  for (const AnnotationKind kind : {AnnotationKind::error, AnnotationKind::warning}) {
    std::size_t count = 0;
    for (const Annotation& one : annotations) {
      if (one.kind == kind && ++count <= max_annotations)
        text += command(kind, one.title, shortened(one.message, max_message_bytes));
    }
    if (count > max_annotations) text += command(kind, rest, fmt::format("and {} more", count - max_annotations));
  }
  return text;
}

std::vector<Annotation> annotations_of(const Report& report) {
  std::vector<Annotation> annotations;
  for (const CaseRecord* record : worst_first(report.cases)) {
    if (!went_wrong(record->verdict)) break;
    annotations.push_back({AnnotationKind::error, fmt::format("gpubench {}", name(record->verdict)),
                           fmt::format("{}: {}{}{}", record->key(), record->reason,
                                       record->rerun.empty() ? "" : "; rerun: ", record->rerun)});
  }
  const Totals totals = totals_of(report.cases);
  const auto warn = [&](std::string message) {
    annotations.push_back({AnnotationKind::warning, "gpubench", std::move(message)});
  };
  if (!report.run.complete) warn("the run was interrupted; its report is partial");
  if (const int unverified = totals.count(Verdict::unverified); unverified > 0)
    warn(fmt::format("{} cases were not verified (--check off); their numbers are not results", unverified));
  if (totals.count(Verdict::unsupported) + totals.count(Verdict::skipped) == totals.cases)
    warn("nothing ran: every case is unsupported or was skipped");
  return annotations;
}

void append_summary(const std::string& path, const std::function<std::string(std::size_t)>& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool there = fs::exists(status);
  // Opening a pipe would block until it has a reader.
  if (there && !fs::is_regular_file(status)) throw WriteError(fmt::format("{}: is not a regular file", visible(path)));
  const std::uintmax_t size = there ? fs::file_size(path, error) : 0;
  if (size >= max_summary_bytes && there) return;
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (file) file << text(max_summary_bytes - size) << std::flush;
  if (file) return;
  const int reason = errno;
  file.close();
  if (there) fs::resize_file(path, size, error);
  throw WriteError(fmt::format("{}: add the summary: {}", visible(path), std::generic_category().message(reason)));
}

namespace {

std::string attribute(std::string_view key, std::string_view value) {
  return fmt::format(" {}=\"{}\"", key, xml_text(value));
}

// The schema allows no exponents in suite times.
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
  const double seconds = record.plan_s.value_or(0.0) + record.check_s + record.time_s;
  return std::isfinite(seconds) ? seconds : 0.0;
}

JUnitCase test_of(const CaseRecord& record) {
  ConsoleStyle style;
  style.utf8 = true;
  style.verbosity = 1;
  JUnitCase test{record.c.suite,
                 record.key(),
                 seconds_of(record),
                 element_of(record.verdict),
                 std::string(name(record.verdict)),
                 ""};
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
  document.timestamp = iso_time(run.started_at).substr(0, 19);  // common readers don't accept a time zone
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

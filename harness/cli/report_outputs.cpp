#include "harness/cli/report_outputs.h"

#include <fmt/format.h>

#include <new>

#include "harness/page/page.h"
#include "harness/report/atomic_file.h"
#include "harness/report/content_digest.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

bool wants_github(const Options& options, const Environment& environment) {
  if (options.github != GithubMode::automatic) return options.github == GithubMode::on;
  return environment.variable("GITHUB_ACTIONS") == "true";
}

}  // namespace

std::string report_text(const Report& report, ReportForm form) {
  switch (form) {
    case ReportForm::json: return sealed_text(report_json(report), 1);
    case ReportForm::junit: return junit_text(report);
    case ReportForm::csv: return exported_csv(report);
    case ReportForm::markdown: return markdown_text(report, most_summary_bytes);
  }
  return "";
}

ReportOutputs::ReportOutputs(Report report, const Options& options, const Destination& destination,
                             const Environment& environment)
    : report_(std::move(report)), options_(options), destination_(destination), environment_(environment) {}

void ReportOutputs::lose(std::string_view what, const std::exception& why) {
  lost_ = true;
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&why) != nullptr;  // whose own words are the type's name
  complaints_.push_back(fmt::format("{} is lost: {}", what, no_memory ? "out of memory" : visible(why.what())));
}

bool ReportOutputs::write_file(const std::string& file, ReportForm form) {
  try {
    environment_.out.flush();  // `file` may be a name of standard output
    write_atomically(file, report_text(report_, form), options_.writing);
    return true;
  } catch (const std::exception& e) {  // WriteError; ExportError of a number that CSV cannot hold
    lose("the report", e);
    return false;
  }
}

bool ReportOutputs::write_to_stdout() {
  try {
    if (environment_.out << report_text(report_, *destination_.on_stdout) << std::flush) return true;
    lose("the report", WriteError("standard output: cannot write"));
  } catch (const ExportError& e) {
    lose("the report", e);
  }
  return false;
}

void ReportOutputs::write_summary() {
  const std::string path = environment_.variable("GITHUB_STEP_SUMMARY");
  if (path.empty() || !wants_github(options_, environment_)) return;
  try {
    append_summary(path, [&](std::size_t room) { return markdown_text(report_, room); });
  } catch (const WriteError& e) {
    complaints_.push_back(fmt::format("the summary in $GITHUB_STEP_SUMMARY is lost: {}", e.what()));
    lost_ = lost_ || options_.github == GithubMode::on;
  }
}

void ReportOutputs::write() {
  bool kept = false;
  std::vector<std::string> files{destination_.file};
  if (destination_.json_file != destination_.file) files.push_back(destination_.json_file);
  for (const std::string& file : files) {
    if (file.empty() || !write_file(file, ReportForm::json)) continue;
    kept = true;
    if (report_path_.empty()) report_path_ = file;
  }
  for (const FormPlace& place : destination_.forms) write_file(place.file, place.form);
  if (destination_.on_stdout && write_to_stdout()) kept = kept || destination_.on_stdout == ReportForm::json;
  if (!kept) rescue();
  write_page();
  write_summary();
}

void ReportOutputs::rescue() {
  const std::string text = report_text(report_, ReportForm::json);
  const std::string wanted = environment_.variable("TMPDIR");
  try {
    report_path_ = write_new_file(wanted.empty() ? "/tmp" : wanted, "gpubench-report-", ".json", text);
    complaints_.push_back(fmt::format("the report is in {} instead", visible(report_path_)));
  } catch (const WriteError& e) {
    environment_.err << text << std::flush;
    complaints_.push_back(fmt::format("no second place took it: {}; it is above, on standard error", e.what()));
  }
}

void ReportOutputs::write_page() {
  if (destination_.page_file.empty()) return;
  try {
    write_atomically(destination_.page_file, page::report_page({&report_, 1}), options_.writing);
    page_path_ = destination_.page_file;
  } catch (const std::exception& e) {  // whatever it is, the report is there already
    lose("the page", e);
  }
}

std::string ReportOutputs::annotations() const {
  return wants_github(options_, environment_) ? annotations_text(annotations_of(report_), "gpubench") : "";
}

}  // namespace gpubench

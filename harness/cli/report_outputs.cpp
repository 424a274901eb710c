#include "harness/cli/report_outputs.h"

#include <fmt/format.h>

#include "harness/page/page.h"
#include "harness/report/atomic_file.h"
#include "harness/report/content_digest.h"
#include "harness/report/export.h"
#include "harness/report/github.h"
#include "harness/report/json.h"
#include "harness/report/junit.h"
#include "harness/report/markdown.h"
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

bool ReportOutputs::write_file(const std::string& file, ReportForm form) const {
  try {
    write_atomically(file, report_text(report_, form));
    return true;
  } catch (const std::exception& e) {  // WriteError; ExportError of a number that CSV cannot hold
    environment_.err << fmt::format("gpubench: the report is lost: {}\n", visible(e.what()));
    return false;
  }
}

bool ReportOutputs::write_summary() const {
  const std::string path = environment_.variable("GITHUB_STEP_SUMMARY");
  if (path.empty() || !wants_github(options_, environment_)) return true;
  try {
    append_summary(path, [&](std::size_t room) { return markdown_text(report_, room); });
    return true;
  } catch (const WriteError& e) {
    environment_.err << fmt::format("gpubench: the summary in $GITHUB_STEP_SUMMARY is lost: {}\n", e.what());
    return options_.github != GithubMode::on;
  }
}

bool ReportOutputs::write() const {
  bool written = true;
  if (!destination_.file.empty()) written = write_file(destination_.file, ReportForm::json) && written;
  const bool same = destination_.json_file == destination_.file;
  if (!destination_.json_file.empty() && !same)
    written = write_file(destination_.json_file, ReportForm::json) && written;
  for (const FormPlace& place : destination_.forms) written = write_file(place.file, place.form) && written;
  if (destination_.on_stdout) {
    try {
      written =
          static_cast<bool>(environment_.out << report_text(report_, *destination_.on_stdout) << std::flush) && written;
    } catch (const ExportError& e) {
      environment_.err << fmt::format("gpubench: the report is lost: {}\n", visible(e.what()));
      written = false;
    }
  }
  return write_summary() && written;
}

std::string ReportOutputs::write_page() const {
  if (destination_.page_file.empty()) return "";
  try {
    write_atomically(destination_.page_file, page::report_page({&report_, 1}));
    return destination_.page_file;
  } catch (const std::exception& e) {  // whatever it is, the report is there already
    environment_.err << fmt::format("gpubench: the page is lost: {}\n", visible(e.what()));
    return "";
  }
}

std::string ReportOutputs::annotations() const {
  return wants_github(options_, environment_) ? annotations_text(annotations_of(report_), "gpubench") : "";
}

}  // namespace gpubench

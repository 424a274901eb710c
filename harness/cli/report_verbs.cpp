#include "harness/cli/verbs.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/recorder.h"
#include "harness/cli/report_outputs.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/page/page.h"
#include "harness/report/atomic_file.h"
#include "harness/report/export.h"
#include "harness/report/quantity.h"
#include "harness/report/report_json.h"
#include "harness/report/visible_text.h"

namespace gpubench {

int validate_verb(const Options& options, const Environment& environment) {
  bool all_hold = true;
  for (const std::string& file : options.files) {
    const Problems problems = problems_of_report(file);
    if (problems.none()) {
      environment.out << fmt::format("{}: valid\n", visible(file));
      continue;
    }
    all_hold = false;
    for (const std::string& problem : problems.kept()) environment.out << problem << "\n";
    if (const std::size_t more = problems.count() - problems.kept().size(); more > 0)
      environment.out << fmt::format("{}: and {}{} more\n", visible(file), problems.many() ? "at least " : "", more);
  }
  return all_hold ? exit_codes::ok : exit_codes::usage;
}

int export_verb(const Options& options, const Environment& environment) {
  try {
    Report report = read_report(options.files.front());
    if (const auto key = key_for(options, environment))
      report = anonymized(std::move(report), *key, kept_flags(environment.suites), users_of(environment));
    const std::string text = exported(report, *options.export_format);
    if (options.output.empty()) {
      environment.out << text;
    } else {
      write_atomically(options.output, text, options.writing);
    }
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  } catch (const ExportError& e) {
    throw UsageError(fmt::format("{}: {}", visible(options.files.front()), e.what()));
  } catch (const WriteError& e) {
    fail_to_write("--output", e);
  }
  return exit_codes::ok;
}

namespace {

std::vector<Report> reports_of(const Options& options, const Environment& environment) {
  const std::optional<HashKey> key = key_for(options, environment);
  std::vector<Report> reports;
  try {
    for (const std::string& file : options.files) {
      Report report = read_report(file);
      reports.push_back(key ? anonymized(std::move(report), *key, kept_flags(environment.suites), users_of(environment))
                            : std::move(report));
    }
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  return reports;
}

// Writes what was asked for, and says so on standard error: standard output may be one of the documents.
class PageFiles {
 public:
  PageFiles(const Environment& environment, const WriteRules& rules, const HeldFolders& folders)
      : environment_(environment), rules_(rules), folders_(folders) {}

  void file(const std::string& path, std::string_view text) const {
    write_atomically(path, text, folders_.rules(path, rules_));
    environment_.err << fmt::format("{}: {}\n", visible(path), format_quantity(static_cast<double>(text.size()), "B"));
  }

  void drawings(const std::string& folder, std::span<const page::Drawing> drawings) const {
    make_folder(folder);
    for (const page::Drawing& drawing : drawings)
      write_atomically((std::filesystem::path(folder) / (drawing.name + ".svg")).string(), drawing.svg, rules_);
    environment_.err << fmt::format("{}: {} charts\n", visible(folder), drawings.size());
  }

  void document(std::string_view text) const { environment_.out << text; }

 private:
  const Environment& environment_;
  WriteRules rules_;
  const HeldFolders& folders_;
};

void write_all(const Options& options, const Destination& destination, std::span<const Report> reports,
               const PageFiles& outputs) {
  const page::PageOptions page_options{options.price_per_hour, options.labels};
  outputs.file(destination.page_file, page::report_page(reports, page_options));
  if (!options.svg.empty()) outputs.drawings(options.svg, page::report_drawings(reports, page_options));
  for (const FormPlace& place : destination.forms) outputs.file(place.file, report_text(reports.front(), place.form));
  if (destination.on_stdout) outputs.document(report_text(reports.front(), *destination.on_stdout));
}

std::string page_path(const Options& options) {
  if (!options.output.empty()) return options.output;
  return std::filesystem::path(options.files.front()).replace_filename("report.html").string();
}

}  // namespace

int page_verb(const Options& options, const Environment& environment) {
  const std::vector<Report> reports = reports_of(options, environment);
  // What is drawn from reports can be drawn again: it replaces what was drawn before.
  const WriteRules rules{true, options.writing.mode};
  const Destination destination = open_report_destination(options, page_path(options), rules);
  try {
    write_all(options, destination, reports, PageFiles(environment, rules, destination.folders));
  } catch (const ExportError& e) {
    throw UsageError(fmt::format("{}: {}", visible(options.files.front()), e.what()));
  } catch (const WriteError& e) {
    fail_to_write("", e);
  }
  return exit_codes::ok;
}

}  // namespace gpubench

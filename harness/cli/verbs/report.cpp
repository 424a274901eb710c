#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/recorder.h"
#include "harness/cli/report_outputs.h"
#include "harness/cli/verb.h"
#include "harness/compare/comparison.h"
#include "harness/page/report_page.h"
#include "harness/report/export.h"

namespace gpubench {
namespace {

struct ReportOptions {
  std::optional<double> price_per_hour{};
  std::map<std::string, std::string> labels;  ///< of files, by letter
};

std::vector<Report> reports_of(const Options& options, const Environment& environment) {
  const std::optional<HashKey> key = key_for(options, environment);
  std::vector<Report> reports;
  try {
    for (const std::string& file : options.arguments) {
      Report report = read_report(file);
      reports.push_back(key ? anonymized(std::move(report), *key, kept_flags(environment.suites), users_of(environment))
                            : std::move(report));
    }
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  return reports;
}

// Lists written files on standard error: standard output may be one of the documents.
class PageFiles {
 public:
  PageFiles(const Environment& environment, const WriteRules& rules, const HeldFolders& folders)
      : environment_(environment), rules_(rules), folders_(folders) {}

  void file(const std::string& path, std::string_view text) const {
    write_listed(path, text, folders_.rules(path, rules_), environment_);
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
  const auto& own = options.of<ReportOptions>();
  const page::PageOptions page_options{own.price_per_hour, own.labels};
  outputs.file(destination.page_file, page::report_page(reports, page_options));
  if (!options.svg.empty()) outputs.drawings(options.svg, page::report_drawings(reports, page_options));
  for (const FormPlace& place : destination.forms) outputs.file(place.file, report_text(reports.front(), place.form));
  if (destination.on_stdout) outputs.document(report_text(reports.front(), *destination.on_stdout));
}

std::string page_path(const Options& options) {
  if (!options.output.empty()) return options.output;
  return std::filesystem::path(options.arguments.front()).replace_filename("report.html").string();
}

// Writes the page and the files of --svg, --markdown, --csv and --junit, each atomically.
int report_command(const Options& options, const Environment& environment) {
  const std::vector<Report> reports = reports_of(options, environment);
  // Overwrites existing files: they can be made from the reports again.
  const WriteRules rules{true, options.writing.mode};
  const Destination destination = open_report_destination(options, page_path(options), rules);
  try {
    write_all(options, destination, reports, PageFiles(environment, rules, destination.folders));
  } catch (const ExportError& e) {
    throw UsageError(fmt::format("{}: {}", visible(options.arguments.front()), e.what()));
  } catch (const WriteError& e) {
    fail_to_write("", e);
  }
  return exit_codes::ok;
}

void check_labels(const Options& options) {
  const std::map<std::string, std::string>& labels = options.of<ReportOptions>().labels;
  if (labels.empty()) return;
  const std::size_t reports = options.arguments.size();
  if (reports < 2) throw UsageError("--label: a single report has no letter; give two reports or more");
  std::vector<std::string> letters;
  for (std::size_t side = 0; side < reports; ++side) letters.push_back(side_letter(side));
  for (const auto& [letter, label] : labels) {
    if (std::find(letters.begin(), letters.end(), letter) == letters.end())
      throw UsageError(
          fmt::format("--label: no report is called '{}'; there are {}", visible(letter), joined(letters)));
  }
}

void check_report(Options& options) {
  const std::size_t reports = options.arguments.size();
  if (reports == 0) throw UsageError("report needs at least one report to read");
  if (reports > 1 && (options.junit || options.csv || options.markdown))
    throw UsageError(fmt::format("{} takes one report, {} were given",
                                 options.junit ? "--junit"
                                 : options.csv ? "--csv"
                                               : "--markdown",
                                 reports));
  check_labels(options);
}

// "A=driver 580": labels one of several reports, each at most once.
void set_label(Options& o, const std::string& flag, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals + 1 == word.size())
    throw UsageError(fmt::format("{}: '{}' is not a label such as A=before", flag, visible(word)));
  const std::string letter = word.substr(0, equals);
  if (!own(&ReportOptions::labels)(o).emplace(letter, word.substr(equals + 1)).second)
    throw UsageError(fmt::format("{}: {} is named twice", flag, visible(letter)));
}

std::vector<Flag> report_flags(std::span<const std::string> /*suites*/) {
  return together(
      shared_flags({"--mode", "--anonymize", "--anonymize-key"}),
      under("output",
            row("-o,--output", "FILE", "the page (default: report.html next to the first report)",
                text(&Options::output)),
            row("--svg", "DIR", "also each chart in a separate file", text(&Options::svg)),
            row("--markdown", "FILE", "also one report as Markdown; -, here as below: to standard output",
                text(&Options::markdown)),
            row("--csv", "FILE", "also one report as CSV, a row for each case and metric", text(&Options::csv)),
            row("--junit", "FILE", "also one report as JUnit XML", text(&Options::junit)),
            row("--price-per-hour", "PRICE",
                "price of one device, in any currency: adds the cost of tokens, images and FLOP of whole steps at the "
                "measured rates",
                converted(own(&ReportOptions::price_per_hour), price_of)),
            row("--label", "A=NAME", "label of one of several reports: A is the first, B the second; may be repeated",
                {Takes::each, set_label})),
      several_arguments("REPORT...", ValueKind::file));
}

}  // namespace

Verb report_verb() {
  return {.name = "report",
          .arguments = "R.json... [flags]",
          .summary = "write an HTML page with charts of one report or several",
          .description = "Also the charts as files.",
          .examples = R"(  gpubench report gpubench-out/20261121T042311Z/report.json      report.html next to it
  gpubench report a100/report.json h200/report.json -o both.html
  gpubench report old.json new.json --label A=before --label B=after
  gpubench report report.json --svg charts --price-per-hour 2.49
)",
          .flags = report_flags,
          .act = report_command,
          .options = ReportOptions{},
          .check = check_report};
}

}  // namespace gpubench

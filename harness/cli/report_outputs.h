// The outputs of a run's report: checked before the first case runs, written at the end.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/core/file/atomic_file.h"
#include "harness/report/report_json.h"

namespace gpubench {

struct FormPlace {
  ReportForm form = ReportForm::json;
  std::string file;
};

struct Destination {
  std::string file;  ///< report.json in a folder; empty: none
  std::string json_file;
  std::string journal_file;
  std::string page_file;
  std::vector<FormPlace> forms;
  HeldFolders folders;
  std::optional<ReportForm> on_stdout;  ///< the form that was given "-"; it has standard output to itself

  [[nodiscard]] bool to_stdout() const { return on_stdout.has_value(); }
};

/// From --out DIR, --json FILE, --junit FILE, --csv FILE and --markdown FILE; without the first two,
/// gpubench-out/<timestamp>/report.json. A resumed run uses the places of the first. Creates the folder and checks that
/// each file can be written. Throws as fail_to_write() ("--out: ..."), and UsageError if two flags name one file or
/// more than one is "-". `held`: folders that are already open.
[[nodiscard]] Destination open_destination(const Options& options, std::time_t now, HeldFolders held = {});

/// For the verb report: the page at `page_file`, and --junit, --csv and --markdown. Throws as open_destination().
[[nodiscard]] Destination open_report_destination(const Options& options, const std::string& page_file,
                                                  const WriteRules& rules);

/// `detail`: for JSON. Throws ExportError if CSV cannot represent a number.
[[nodiscard]] std::string report_text(const Report& report, ReportForm form, Detail detail = Detail::brief);

class ReportOutputs {
 public:
  ReportOutputs(Report report, const Options& options, const Destination& destination, const Environment& environment);

  /// Writes the files, the page next to report.json, standard output and the step's summary. A failure does not stop
  /// the others. A report that could not be written anywhere goes to a new file in $TMPDIR (/tmp), or else to standard
  /// error.
  void write();
  /// Whether a requested output is missing; the summary counts only with --github on.
  [[nodiscard]] bool lost() const { return lost_; }
  /// What is missing, why, and where the report is instead; one sentence each.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// Empty: not written.
  [[nodiscard]] const std::string& report_path() const { return report_path_; }
  [[nodiscard]] const std::string& page_path() const { return page_path_; }
  [[nodiscard]] std::string annotations() const;

 private:
  bool write_file(const std::string& file, ReportForm form);
  bool write_to_stdout();
  void write_page();
  void write_summary();
  void rescue();
  void lose(std::string_view what, const std::exception& why);

  Report report_;
  const Options& options_;
  const Destination& destination_;
  const Environment& environment_;
  bool lost_ = false;
  std::vector<std::string> complaints_;
  std::string report_path_, page_path_;
};

}  // namespace gpubench

// A run's report in every form that was asked for: where it goes, decided and tried before the first case runs; and
// writing it at the end.
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

/// A report in another form that was asked for: --junit FILE and the like.
struct FormPlace {
  ReportForm form = ReportForm::json;
  std::string file;
};

struct Destination {
  std::string file;                     ///< report.json in a folder; empty: none
  std::string json_file;                ///< of --json; empty: none
  std::string journal_file;             ///< beside the report; empty: none
  std::string page_file;                ///< report.html, beside report.json; empty: none
  std::vector<FormPlace> forms;         ///< other files to write
  HeldFolders folders;                  ///< of these files
  std::optional<ReportForm> on_stdout;  ///< of the form that was given "-"; standard output then holds nothing else

  [[nodiscard]] bool to_stdout() const { return on_stdout.has_value(); }
};

/// --out DIR, --json FILE, --junit FILE, --csv FILE and --markdown FILE as asked; with neither of the first two,
/// gpubench-out/<timestamp>/report.json. A resumed run's are those of the first. Creates the folder and proves that
/// each file can be written. Throws otherwise, as fail_to_write() ("--out: ..."), and UsageError where two flags name
/// one file, and where more than one is "-". `held`: folders that are open already.
[[nodiscard]] Destination open_destination(const Options& options, std::time_t now, HeldFolders held = {});

/// Of the verb report: the page at `page_file`, and --junit, --csv and --markdown as asked. Throws as above.
[[nodiscard]] Destination open_report_destination(const Options& options, const std::string& page_file,
                                                  const WriteRules& rules);

/// The whole document; `detail`: of JSON. Throws ExportError where CSV cannot hold a number of it.
[[nodiscard]] std::string report_text(const Report& report, ReportForm form, Detail detail = Detail::brief);

class ReportOutputs {
 public:
  ReportOutputs(Report report, const Options& options, const Destination& destination, const Environment& environment);

  /// Writes the files, the page beside report.json, the document on standard output and the step's summary; one
  /// failure does not keep the others from being written. A report that could be written nowhere goes to a new file in
  /// $TMPDIR (/tmp), failing that to standard error.
  void write();
  /// Whether something that was asked for is not where it should be; a summary is asked for by --github on only.
  [[nodiscard]] bool lost() const { return lost_; }
  /// What is lost, why, and where the report is instead, a sentence each: a user's last lines.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
  /// Where the report and its page are; empty where there is none.
  [[nodiscard]] const std::string& report_path() const { return report_path_; }
  [[nodiscard]] const std::string& page_path() const { return page_path_; }
  /// GitHub's annotations; "" where they are not wanted.
  [[nodiscard]] std::string annotations() const;

 private:
  /// False where it is lost.
  bool write_file(const std::string& file, ReportForm form);
  bool write_to_stdout();
  void write_page();
  void write_summary();
  void rescue();
  /// `what`: "the report".
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

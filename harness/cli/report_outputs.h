// A run's report in every form that was asked for, at its end.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/destination.h"
#include "harness/cli/environment.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The whole document. Throws ExportError of a number that CSV cannot hold.
[[nodiscard]] std::string report_text(const Report& report, ReportForm form);

class ReportOutputs {
 public:
  ReportOutputs(Report report, const Options& options, const Destination& destination, const Environment& environment);

  /// Writes the files, the page beside report.json, the document on standard output and the step's summary; what fails
  /// does not keep the others from being written. Where no place took the report itself it goes to a new file in
  /// $TMPDIR (/tmp), and where that fails as well to standard error.
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

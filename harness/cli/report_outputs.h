// A run's report in every form that was asked for, at its end.
#pragma once

#include <string>

#include "harness/cli/destination.h"
#include "harness/cli/environment.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The whole document. Throws ExportError of a number that CSV cannot hold.
[[nodiscard]] std::string report_text(const Report& report, ReportForm form);

class ReportOutputs {
 public:
  ReportOutputs(Report report, const Options& options, const Destination& destination, const Environment& environment);

  /// Writes the files, the document on standard output and the step's summary; what fails is told on standard error,
  /// and does not keep the others from being written. False where something that was asked for is lost; a summary is
  /// asked for by --github on only.
  [[nodiscard]] bool write() const;
  /// Draws the page beside report.json. Returns its path; empty where there is no place for one, or where it could not
  /// be drawn or written, which is told on standard error and takes nothing from the report.
  [[nodiscard]] std::string write_page() const;
  /// GitHub's annotations; "" where they are not wanted.
  [[nodiscard]] std::string annotations() const;

 private:
  [[nodiscard]] bool write_file(const std::string& file, ReportForm form) const;
  [[nodiscard]] bool write_summary() const;

  Report report_;
  const Options& options_;
  const Destination& destination_;
  const Environment& environment_;
};

}  // namespace gpubench

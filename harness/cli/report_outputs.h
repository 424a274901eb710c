// A run's report in every form that was asked for, at its end.
#pragma once

#include <string>

#include "harness/cli/destination.h"
#include "harness/cli/environment.h"
#include "harness/report/report_json.h"

namespace gpubench {

class ReportOutputs {
 public:
  ReportOutputs(Report report, const Options& options, const Destination& destination, const Environment& environment);

  /// Writes the files, the document on standard output and the step's summary; what fails is told on standard error,
  /// and does not keep the others from being written. False where something that was asked for is lost; a summary is
  /// asked for by --github on only.
  [[nodiscard]] bool write() const;
  /// GitHub's annotations; "" where they are not wanted.
  [[nodiscard]] std::string annotations() const;

 private:
  [[nodiscard]] bool write_file(const std::string& file, ReportForm form) const;
  [[nodiscard]] bool write_summary() const;
  [[nodiscard]] std::string text(ReportForm form) const;

  Report report_;
  const Options& options_;
  const Destination& destination_;
  const Environment& environment_;
};

}  // namespace gpubench

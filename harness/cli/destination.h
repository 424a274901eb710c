// Where the report goes, settled and tried before the first case runs.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/options.h"

namespace gpubench {

/// A report in another form that was asked for: --junit FILE and the like.
struct FormPlace {
  ReportForm form = ReportForm::json;
  std::string file;
};

struct Destination {
  std::string file;                     ///< report.json in a folder; empty: none
  std::string json_file;                ///< of --json; empty: none
  std::string journal_file;             ///< beside the report; empty: there is no file that it could be beside
  std::string page_file;                ///< report.html, beside report.json; empty: none
  std::vector<FormPlace> forms;         ///< other files to write
  std::optional<ReportForm> on_stdout;  ///< of the form that was given "-"; standard output then holds nothing else

  [[nodiscard]] bool to_stdout() const { return on_stdout.has_value(); }
};

/// --out DIR, --json FILE, --junit FILE, --csv FILE and --markdown FILE as asked; with neither of the first two,
/// gpubench-out/<timestamp>/report.json. Of a run that is gone on with, as resumption.h set them. Creates the folder
/// and proves that each file can be written. Throws UsageError otherwise ("--out x: ..."), where two flags name one
/// file, and where more than one is "-".
[[nodiscard]] Destination open_destination(const Options& options, std::time_t now);

/// Of the verb report: the page at `page_file`, and --junit, --csv and --markdown as asked. Throws as above.
[[nodiscard]] Destination open_report_destination(const Options& options, const std::string& page_file,
                                                  const WriteRules& rules);

}  // namespace gpubench

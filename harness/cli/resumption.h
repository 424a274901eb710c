// Going on with a run that was interrupted: what its journal asks for, and whether this is the same run.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/plan/plan.h"
#include "harness/report/anonymize.h"
#include "harness/report/journal.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The journal in the folder of report.json, and what its name ends with beside --json FILE.
inline constexpr std::string_view journal_name = "journal.jsonl";
inline constexpr std::string_view journal_ending = ".journal.jsonl";

/// Machine, build or options are not those of the run that was interrupted. Exit 4.
class AnotherRun : public std::runtime_error {
 public:
  explicit AnotherRun(const std::string& what) : std::runtime_error(what) {}
};

/// A run to go on with.
struct Resumption {
  std::string path;  ///< of the journal
  Journal journal;
  Options options;                 ///< with the flags of the journal where none of its kind is given, and its places
  std::vector<std::string> words;  ///< the command line of these options
};

/// The journal's file that --resume DIR or --resume FILE means.
[[nodiscard]] std::string journal_of(const std::string& resume);

/// Of a command line with --resume. Throws UsageError where there is no journal, or one that does not hold.
[[nodiscard]] Resumption open_resumption(const Options& options, std::span<const std::string> words,
                                         const Environment& environment);

/// What must be the same on both sides of an interruption: the set-up of the report, its build, seed and check, the
/// reports that it follows (--pin, --like), and the cases planned. `anonymizer`: null for names as they are.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_of(const Report& report,
                                                                           std::span<const PlannedCase> plan,
                                                                           const Options& options,
                                                                           const Anonymizer* anonymizer);

/// Throws AnotherRun with the first fact that differs.
void require_same_run(const Resumption& resumption, const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace gpubench

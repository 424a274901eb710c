// The verbs. Each returns the exit code, and throws UsageError for what a user can mend.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// Plans, opens the report, runs every case in a worker, tells what came out. `words`: the command line as typed,
/// without the program's name; a worker is started with the same. Throws UsageError before anything ran, CannotMeasure
/// where nothing can.
int run_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// The findings of harness/hardware in a table, with what the backends say about themselves. Always 0: it reports, it
/// does not judge.
int doctor_verb(const Options& options, const Environment& environment);

/// What there is to run, or one case in detail.
int list_verb(const Options& options, const Environment& environment);

// What is done with a report that is already written: no device, no backend.

/// Prints each file with everything that is wrong with it. 0 where all hold, else 2.
int validate_verb(const Options& options, const Environment& environment);

/// Writes the report in another format. Throws UsageError where it cannot be read or told (exit 2).
int export_verb(const Options& options, const Environment& environment);

/// Writes the HTML page beside the first report (or to -o), and what --svg, --markdown, --csv and --junit ask for. Says
/// on standard error what was written. Throws UsageError where a report does not hold ("file:path: why") or a place
/// cannot be written; files are the old ones or whole new ones.
int page_verb(const Options& options, const Environment& environment);

// Reports held against each other: no device, but for calibrate, which runs.

/// Ratios with intervals. Exit 0; 4 where no case passed on both sides. Throws UsageError for files that are no
/// reports.
int compare_verb(const Options& options, const Environment& environment);

/// One verdict. Exit 0 passed, 1 failed, 4 not comparable or inconclusive. Throws UsageError likewise.
int gate_verb(const Options& options, const Environment& environment);

/// Runs this program several times with the flags of `words`, or takes reports that are there, and writes the noise
/// file. Exit as the worst of the runs; 4 where there is no case to tell the noise of; 2 where reports that were given,
/// 3 where runs have no noise at all.
int calibrate_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// save, list, show, merge. Throws UsageError.
int baseline_verb(const Options& options, const Environment& environment);

}  // namespace gpubench

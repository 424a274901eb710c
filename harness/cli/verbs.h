// The verbs, their exit codes, and what several of them read or print. A verb returns the exit code, and throws
// UsageError for what the user can correct.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "harness/cli/environment.h"
#include "harness/cli/estimate.h"
#include "harness/cli/options.h"
#include "harness/compare/baseline.h"
#include "harness/compare/gate.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/plan/plan.h"
#include "harness/report/json_parser.h"
#include "harness/report/report_json.h"
#include "harness/report/text_table.h"

namespace gpubench {

namespace exit_codes {
inline constexpr int ok = 0;                 ///< all that ran passed, and something ran
inline constexpr int verdict_failed = 1;     ///< fail, downgraded, not_proven
inline constexpr int usage = 2;              ///< usage, configuration or input file; nothing was measured
inline constexpr int could_not_measure = 3;  ///< crash, hang, device missing or lost, report lost
inline constexpr int not_comparable = 4;     ///< for compare and gate
inline constexpr int nothing_ran = 5;
inline constexpr int hung_up = 129;      ///< SIGHUP, the terminal is gone; the report is partial
inline constexpr int interrupted = 130;  ///< SIGINT; the report is partial
inline constexpr int terminated = 143;   ///< SIGTERM; the report is partial

/// In the order of the help.
inline constexpr std::array all{ok,          verdict_failed, usage,       could_not_measure, not_comparable,
                                nothing_ran, hung_up,        interrupted, terminated};
}  // namespace exit_codes

/// What a run came to.
struct Outcome {
  Totals totals;
  int signal = 0;            ///< that stopped it; 0: none
  bool report_lost = false;  ///< it could not be written at the end
  bool untried = false;      ///< an implementation takes calls that no case tried, which --strict forbids
};

/// The one code for an outcome. Where several hold: 129/130/143, 1, 3, 5, 0 (2 is decided before anything runs).
/// `unsupported` and `skipped` neither fail nor count as run. `unverified` was asked for (--check off) and counts as
/// run: it ends in 0 with a loud line, and never enters `benchmarks`.
[[nodiscard]] int exit_code(const Outcome& outcome);

/// One phrase: "all that ran passed".
[[nodiscard]] std::string explain_exit_code(int code);

/// Plans, opens the report, runs every case in a worker, prints the results. `words`: the command line as typed,
/// without the program's name; a worker is started with the same. Throws UsageError before anything ran, CannotMeasure
/// where nothing can.
int run_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// The findings of harness/hardware in a table, with what the backends say about themselves. Always 0: it reports, it
/// does not judge.
int doctor_verb(const Options& options, const Environment& environment);

/// What there is to run, or one case in detail.
int list_verb(const Options& options, const Environment& environment);

// Verbs on reports that are already written: no device, no backend.

/// Prints each file with everything that is wrong with it. 0 where all hold, else 2.
int validate_verb(const Options& options, const Environment& environment);

/// Writes the report in another format. Throws UsageError where it cannot be read or the format cannot hold it (exit
/// 2).
int export_verb(const Options& options, const Environment& environment);

/// Writes the HTML page beside the first report (or to -o), and what --svg, --markdown, --csv and --junit ask for. Says
/// on standard error what was written. Throws UsageError where a report does not hold ("file:path: why") or a place
/// cannot be written; files are the old ones or whole new ones.
int page_verb(const Options& options, const Environment& environment);

// Verbs that compare reports: no device, but for calibrate, which runs.

/// Ratios with intervals. Exit 0; 4 where no case passed on both sides. Throws UsageError for files that are no
/// reports.
int compare_verb(const Options& options, const Environment& environment);

/// One verdict. Exit 0 passed, 1 failed, 4 not comparable or inconclusive. Throws UsageError likewise.
int gate_verb(const Options& options, const Environment& environment);

/// Runs this program several times with the flags of `words`, or takes reports that are there, and writes the noise
/// file. Exit as the worst of the runs; 4 where there is no case to tell the noise of; 2 where reports that were given,
/// 3 where runs have no noise at all.
int calibrate_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// The largest batch of a workload that fits, the fastest, and the rate of those between: runs this program once for
/// each. Exit 0 where each precision has a batch that passed; else as the last run that did not. Throws UsageError.
int tune_batch_verb(const Options& options, const Environment& environment);

/// new, list, check: of implementations under test. Throws UsageError; check exits as run.
int impl_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// Puts faults into ops and into the device, and runs what has none: 0 where all are caught and nothing raises an
/// alarm, else 1; 3 where its child crashed or hung. Throws UsageError, CannotMeasure.
int selftest_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// Whether cases leave the same bits again, in which ways and where not. 0; 1 where bits differ that are promised
/// (is_promised()); 3 where its child crashed or hung. Throws UsageError, CannotMeasure.
int determinism_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// Runs launches over and over and compares each with one that was judged. 0; 1 where one differed, the textbook
/// rejected something or devices voted that something is wrong; 3 where a child crashed or hung. Throws UsageError,
/// CannotMeasure.
int soak_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

/// Trains small models in each recipe, judges steps one by one against fp64, and shows curves. 0; 1 where a step was
/// rejected, the fp64 loss did not fall, or a recipe that is broken on purpose was not told apart. Throws UsageError,
/// CannotMeasure.
int learn_verb(const Options& options, const Environment& environment);

/// A training step on many devices, from measured steps or a rate; without a model, how well published series are
/// predicted. 0. Throws UsageError, CannotMeasure.
int predict_verb(const Options& options, const Environment& environment);

/// A case on many ranks in virtual time. 0; 1 where ranks get stuck. Throws UsageError, CannotMeasure.
int simulate_verb(const Options& options, const Environment& environment);

/// save, list, show, merge. Throws UsageError.
int baseline_verb(const Options& options, const Environment& environment);

/// Without a subject every op with what it does; an op, or a case with the formulas of its ops; --html writes a page of
/// each op. Throws UsageError with the nearest names for a subject that is neither.
int explain_verb(const Options& options, const Environment& environment);

// What list and --dry-run print.

/// The cases that the subject names; only those are built, which takes no time. Throws UsageError where there are none,
/// with the nearest of `also_known` (of explain: ops) and of the known ids and their beginnings.
[[nodiscard]] std::vector<PlannedCase> named_cases(const Options& options, const Environment& environment,
                                                   std::vector<std::string> also_known = {});

/// The cases with label, work and memory.
[[nodiscard]] std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style);
[[nodiscard]] Json cases_json(std::span<const PlannedCase> cases);

/// The plan of a run: each case with estimates of time and memory, and their sum.
[[nodiscard]] std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores,
                                    const ConsoleStyle& style);

/// One case in detail: its tensors, its ops, what they cost, how they are judged.
[[nodiscard]] std::string case_detail(const PlannedCase& planned, const std::string& rerun, const ConsoleStyle& style);
[[nodiscard]] Json case_detail_json(const PlannedCase& planned, const std::string& rerun);
/// Of both, what a program of several ops is made of: work by kind and by layer, memory by kind, and what each policy
/// of recomputation would save (memory, with what ops leave reused) and cost (work). Nothing for a program of one op.
[[nodiscard]] std::string step_detail(const Program& program, const ConsoleStyle& style);
void add_step_detail(Json& detail, const Program& program);

/// doctor's table of GPUs, a line each: memory, clocks, power, temperature, ECC, MIG, NVLink, PCIe, what holds its
/// clocks back. Ends with a newline; empty where there is none. What is not known is "-".
[[nodiscard]] std::string gpu_table(const GpuSurvey& survey, const ConsoleStyle& style);

// What the verbs that compare reports read.

/// read_sides() for files that a user named. Throws UsageError "`flag`: file:path: why", and where one run is given
/// twice, on one side or on two.
[[nodiscard]] std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides);
[[nodiscard]] SideFile read_side_of(std::span<const std::string> paths, std::string_view flag);

/// The noise file at `path`, or in the folder `path` the one of this set-up. Throws UsageError.
[[nodiscard]] Noise noise_at(const std::string& path, const Setup& setup);

/// "noise-0123456789abcdef.json"
[[nodiscard]] std::string noise_file_name(const Setup& setup);

}  // namespace gpubench

// The selection of cases, and notes for the user before they run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/hardware/host.h"
#include "harness/plan/plan.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// The user's selection completed for the device: without --tier `standard` on a GPU and `quick` elsewhere, without
/// --precision the recipes of the device.
[[nodiscard]] Selection selection_for(const Options& options, const DeviceChoice& device);

/// The suites of the program, or with --shapes their workloads with the shapes of a list.
struct SelectedSuites {
  std::vector<Suite> listed;
  std::optional<ShapesContext> source;

  [[nodiscard]] Environment in(const Environment& environment) const;
};
/// Throws UsageError for an invalid list.
[[nodiscard]] SelectedSuites selected_suites(const Options& options, const Environment& environment);
/// Notes on standard error about shapes of the list that are not measured as listed.
void note_exceptions(const SelectedSuites& suites, const Environment& environment);

/// Throws UsageError if --ranks asks for more GPUs than there are. Cases not requested by --ranks, such as a suite of
/// two ranks, become unsupported when they run.
void expect_devices_for(const Selection& selection, const DeviceChoice& device);

/// Reports that nothing matches, and the lowest tier with a match; returns exit code 5.
int refuse_empty(const Selection& selection, const Environment& environment);

/// Notes on standard error for suites requested by name without a case in `plan`, with the lowest tier that has one.
void note_suites_without_cases(const Selection& selection, std::span<const PlannedCase> plan,
                               const Environment& environment);

/// Warnings for requests that run without the expected effect: energy without a counter, more ranks than processors.
/// `processors`: those that this process may use.
[[nodiscard]] std::vector<std::string> selection_warnings(const Options& options, const DeviceChoice& device,
                                                          int processors);

/// Notes on standard error for recipes that the device has no arithmetic for, and the fate of their cases.
void note_missing_recipes(const Selection& selection, const DeviceChoice& device, const Environment& environment);

/// Matches `subject` with the whole name of a workload, else with a part of the ids.
[[nodiscard]] std::vector<PlannedCase> named_by(const std::string& subject, std::span<const PlannedCase> declared);

[[nodiscard]] std::vector<std::string> suite_names(std::span<const Suite> suites);

/// The recipes of a run with these flags; empty: all.
[[nodiscard]] std::vector<std::string> default_recipes(const Options& options, const Environment& environment);

/// Builds only the cases that the subject names. Throws UsageError if there are none, with the nearest of `also_known`
/// (for explain: ops), of the known ids and of their prefixes.
[[nodiscard]] std::vector<PlannedCase> named_cases(const Options& options, const Environment& environment,
                                                   std::vector<std::string> also_known = {});

/// Throws UsageError for an unknown subject, with the nearest workload.
[[noreturn]] void refuse_subject(std::string_view verb, const std::string& subject, const Environment& environment);

/// A regular expression that matches one id.
[[nodiscard]] std::string id_pattern(const std::string& id);

/// The start of a rerun line: flags needed to plan the case and to run it on the same device.
[[nodiscard]] std::string rerun_prefix(const Options& options);

/// Notes on standard error: flags taken from the environment, and GPUBENCH_ variables that match no flag.
void note_variables(const Options& options, const Environment& environment);

[[nodiscard]] std::string rerun_line(const Options& options, const PlannedCase& planned);

/// Prints on standard error how many cases have injected slowness or errors, so that the run is not taken for a normal
/// one. Throws UsageError, with the nearest kind of op, if no planned case runs the op.
void announce_injections(const Options& options, std::span<const PlannedCase> plan, const Environment& environment);

/// A note if a requested error affected no case: the op was fused into another.
void note_error_without_effect(const Options& options, std::span<const CaseRecord> records,
                               const Environment& environment);

/// "gemm=25%", "gemm=bit", or both with a comma; "" if none.
[[nodiscard]] std::string injected_text(const Options& options);

/// "warning: tasks waited for a processor during 82% of the last 10 s: ..."; empty on an idle machine. From the
/// kernel's pressure, or else the load average, as doctor's D205 and D206. Call before a run: the lost time cannot be
/// measured afterwards.
[[nodiscard]] std::string busy_warning(const HostInfo& host);

}  // namespace gpubench

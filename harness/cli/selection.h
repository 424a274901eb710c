// Which cases a command line selects, and what the user is told of them before they run.
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

/// What the user selected, completed by what depends on the device: without --tier `standard` on a GPU and `quick`
/// elsewhere, without --precision the recipes that the device has.
[[nodiscard]] Selection selection_for(const Options& options, const DeviceChoice& device);

/// The suites of a command line: those of the program, or their workloads with the shapes of a list (--shapes).
struct SelectedSuites {
  std::vector<Suite> listed;
  std::optional<ShapesContext> source;  ///< of the list

  /// The environment with these suites.
  [[nodiscard]] Environment in(const Environment& environment) const;
};
/// Throws UsageError where the list cannot be read or taken.
[[nodiscard]] SelectedSuites selected_suites(const Options& options, const Environment& environment);
/// Says on standard error what of the list is not measured as it stands there.
void tell_excepts(const SelectedSuites& suites, const Environment& environment);

/// Throws UsageError where --ranks asks for more GPUs than there are. Cases that were not asked for by --ranks (a suite
/// of two ranks, taken with all others) are unsupported instead, when they come to run.
void expect_devices_for(const Selection& selection, const DeviceChoice& device);

/// Says that nothing matches, and from which tier on something would; returns the exit code for it (5).
int refuse_empty(const Selection& selection, const Environment& environment);

/// Says on standard error which suites were asked for by name and have no case in `plan`, and from which tier on they
/// have.
void tell_suites_without_cases(const Selection& selection, std::span<const PlannedCase> plan,
                               const Environment& environment);

/// Warnings about what runs as asked for but without the result hoped for: energy where none is counted, more ranks
/// than processors. `processors`: those that this process may use.
[[nodiscard]] std::vector<std::string> doubtful_wishes(const Options& options, const DeviceChoice& device,
                                                       int processors);

/// Says on standard error which recipes the device has no arithmetic for, and what becomes of their cases.
void tell_lacking(const Selection& selection, const DeviceChoice& device, const Environment& environment);

/// Those that `subject` names: by the whole name of their workload, else by a part of their ids.
[[nodiscard]] std::vector<PlannedCase> named_by(const std::string& subject, std::span<const PlannedCase> declared);

/// Their names, in order.
[[nodiscard]] std::vector<std::string> suite_names(std::span<const Suite> suites);

/// The recipes that a run with these flags takes; empty: all.
[[nodiscard]] std::vector<std::string> default_recipes(const Options& options, const Environment& environment);

/// The cases that the subject names; only those are built, which takes no time. Throws UsageError where there are none,
/// with the nearest of `also_known` (of explain: ops) and of the known ids and their beginnings.
[[nodiscard]] std::vector<PlannedCase> named_cases(const Options& options, const Environment& environment,
                                                   std::vector<std::string> also_known = {});

/// Throws UsageError for a subject of that verb that names none, with the nearest workload.
[[noreturn]] void refuse_subject(std::string_view verb, const std::string& subject, const Environment& environment);

/// A regular expression for one id.
[[nodiscard]] std::string id_pattern(const std::string& id);

/// The start of a rerun line: the flags without which the case would not be planned, or not run where it ran.
[[nodiscard]] std::string rerun_prefix(const Options& options);

/// Says on standard error which flags the environment gave, and which of its GPUBENCH_ variables stand for no flag.
void tell_variables(const Options& options, const Environment& environment);

/// A whole rerun line for one case.
[[nodiscard]] std::string rerun_line(const Options& options, const PlannedCase& planned);

/// Says on standard error how many cases are slowed, or made wrong, on purpose: such a run must not pass for an honest
/// one. Throws UsageError, with the nearest kind of op, where no planned case runs the op.
void announce_injections(const Options& options, std::span<const PlannedCase> plan, const Environment& environment);

/// After the run: a note where an error was asked for and no case had it, since the op was fused into another.
void tell_error_without_effect(const Options& options, std::span<const CaseRecord> records,
                               const Environment& environment);

/// "gemm=25%", "gemm=bit", or both with a comma; "" for an honest run.
[[nodiscard]] std::string injected_text(const Options& options);

/// "warning: tasks waited for a processor during 82% of the last 10 s: ..."; empty on a quiet machine. By the kernel's
/// pressure, without that by the load average, as doctor's D205 and D206. To be shown before a run: afterwards nobody
/// can tell what was lost.
[[nodiscard]] std::string busy_warning(const HostInfo& host);

}  // namespace gpubench

// What run and list share about choosing cases.
#pragma once

#include <string>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// What the user selected, completed by what depends on the device: without --tier `standard` on a GPU and `quick`
/// elsewhere, without --precision the recipes that the device has.
[[nodiscard]] Selection selection_for(const Options& options, const DeviceChoice& device);

/// Throws UsageError where --ranks asks for more GPUs than there are. Cases that nobody asked for in so many words (a
/// suite of two ranks, taken with all others) are unsupported instead, when they come to run.
void expect_devices_for(const Selection& selection, const DeviceChoice& device);

/// Says that nothing matches, and from which tier on something would; returns the exit code for it (5).
int refuse_empty(const Selection& selection, const Environment& environment);

/// Says on standard error which suites were asked for by name and have no case in `plan`, and from which tier on they
/// have.
void tell_suites_without_cases(const Selection& selection, std::span<const PlannedCase> plan,
                               const Environment& environment);

/// What will be run as asked for, and will not say what was hoped for: energy where none is counted, more ranks than
/// processors. `processors`: those that this process may use.
[[nodiscard]] std::vector<std::string> doubtful_wishes(const Options& options, const DeviceChoice& device,
                                                       int processors);

/// Says on standard error which recipes the device has no arithmetic for, and what becomes of their cases; nothing
/// where it has all, or that is not known.
void tell_lacking(const Selection& selection, const DeviceChoice& device, const Environment& environment);

/// The start of a rerun line: the flags without which the case would not be planned, or not run where it ran.
[[nodiscard]] std::string rerun_prefix(const Options& options);

/// Tells on standard error which flags the environment gave, and which of its GPUBENCH_ variables stand for no flag.
void tell_variables(const Options& options, const Environment& environment);

/// A whole rerun line for one case.
[[nodiscard]] std::string rerun_line(const Options& options, const PlannedCase& planned);

}  // namespace gpubench

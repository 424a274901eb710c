// The verbs that hold reports against each other; none of them needs a device, but for calibrate, which runs.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/compare/baseline.h"
#include "harness/compare/gate.h"

namespace gpubench {

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

/// read_sides() for files that a user named. Throws UsageError "`flag`: file:path: why", and where one run is there
/// twice, on one side or on two.
[[nodiscard]] std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides);
[[nodiscard]] SideFile read_side_of(std::span<const std::string> paths, std::string_view flag);

/// The noise file at `path`, or in the folder `path` the one of this set-up. Throws UsageError.
[[nodiscard]] Noise noise_at(const std::string& path, const Setup& setup);

/// "noise-0123456789abcdef.json"
[[nodiscard]] std::string noise_file_name(const Setup& setup);

}  // namespace gpubench

// What the verbs that hold reports against each other read: named reports, and the noise of their set-up.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/compare/baseline.h"
#include "harness/compare/gate.h"

namespace gpubench {

/// read_sides() for files that a user named. Throws UsageError "`flag`: file:path: why", and where one run is there
/// twice, on one side or on two.
[[nodiscard]] std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides);
[[nodiscard]] SideFile read_side_of(std::span<const std::string> paths, std::string_view flag);

/// The noise file at `path`, or in the folder `path` the one of this set-up. Throws UsageError.
[[nodiscard]] Noise noise_at(const std::string& path, const Setup& setup);

/// "noise-0123456789abcdef.json"
[[nodiscard]] std::string noise_file_name(const Setup& setup);

}  // namespace gpubench

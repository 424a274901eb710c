// The reports and noise files that the verbs that compare reports read.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/baseline.h"

namespace gpubench {

/// read_sides() for files that a user named. Throws UsageError "`flag`: file:path: why", and where one run is given
/// twice, on one side or on two.
[[nodiscard]] std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides);
[[nodiscard]] SideFile read_side_of(std::span<const std::string> paths, std::string_view flag);

/// The noise file at `path`, or in the folder `path` the one of this set-up. Throws UsageError.
[[nodiscard]] Noise noise_at(const std::string& path, const Setup& setup);

/// "noise-0123456789abcdef.json"
[[nodiscard]] std::string noise_file_name(const Setup& setup);

}  // namespace gpubench

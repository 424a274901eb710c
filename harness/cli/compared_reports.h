// Reports and noise files read by the verbs that compare reports.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/baseline.h"

namespace gpubench {

/// Throws UsageError "`flag`: file:path: why", also if a run is given twice.
[[nodiscard]] std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides);
[[nodiscard]] SideFile read_side_of(std::span<const std::string> paths, std::string_view flag);

/// `path`: a noise file, or a folder with noise_file_name(setup) in it. Throws UsageError.
[[nodiscard]] Noise noise_at(const std::string& path, const Setup& setup);

[[nodiscard]] std::string noise_file_name(const Setup& setup);

}  // namespace gpubench

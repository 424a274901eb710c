#include "harness/cli/compared_reports.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {

std::vector<SideFile> read_named_sides(std::span<const SidePaths> sides) {
  std::vector<SideFile> read;
  try {
    read = read_sides(sides);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  std::vector<Invocation> all;  // of all sides: a run given twice is an error, also if on two sides
  for (const SideFile& side : read) all.insert(all.end(), side.invocations.begin(), side.invocations.end());
  refuse_repeats(all, sides.size() == 1 ? sides.front().name : "");
  return read;
}

SideFile read_side_of(std::span<const std::string> paths, std::string_view flag) {
  const SidePaths side{flag, paths};
  return std::move(read_named_sides({&side, 1}).front());
}

std::string noise_file_name(const Setup& setup) { return fmt::format("noise-{}.json", fingerprint(setup)); }

Noise noise_at(const std::string& path, const Setup& setup) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string file = folder ? (std::filesystem::path(path) / noise_file_name(setup)).string() : path;
  if (folder && !std::filesystem::exists(file))
    throw UsageError(fmt::format("--noise: {} has no {}: this set-up was not calibrated; run gpubench calibrate",
                                 visible(path), noise_file_name(setup)));
  try {
    return read_noise(file);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--noise: {}", e.what()));
  }
}

}  // namespace gpubench

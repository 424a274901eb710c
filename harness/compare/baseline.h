// Baselines: the runs of one build on one set-up, slimmed to what the gate reads, in one file that can be committed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/invocation.h"
#include "harness/compare/noise.h"

namespace gpubench {

inline constexpr std::string_view baseline_schema_version = "1.2";

struct Baseline {
  std::string name;
  std::string created_at;
  std::vector<Invocation> invocations;  ///< of one set-up; at least one
  std::optional<Noise> noise{};         ///< a calibration of the same set-up
};

/// Pools invocations. Throws UsageError where there is none, where their set-ups differ (naming the keys), where one
/// has an injected slowdown, is partial or is there twice, and where the calibration is of another set-up.
[[nodiscard]] Baseline make_baseline(std::string name, std::string created_at, std::vector<Invocation> invocations,
                                     std::optional<Noise> noise);

[[nodiscard]] Json to_json(const Baseline& baseline);
/// Throws ReadError. Knows nothing of the digest of the text.
[[nodiscard]] Baseline baseline_from_json(const Node& node, const std::string& source);

/// The text of its file, sealed (report/content_digest.h).
[[nodiscard]] std::string baseline_text(const Baseline& baseline);
/// Throws ReadError, also where the digest is not that of the content, or is missing from schema 1.2 on.
[[nodiscard]] Baseline parse_baseline(std::string_view text, const std::string& source);

/// What a file of a side holds: one report, or a baseline with several runs.
struct SideFile {
  std::vector<Invocation> invocations;
  std::optional<Noise> noise{};  ///< of a baseline
};

/// Reads the reports and baselines of each side, several files at a time whichever side they are of. Throws ReadError
/// for the first file that is neither, with the name of its side before it where that has one: "--baseline: file:...".
struct SidePaths {
  std::string_view name;
  std::span<const std::string> paths;
};
[[nodiscard]] std::vector<SideFile> read_sides(std::span<const SidePaths> sides);

}  // namespace gpubench

// Baselines: runs of one build on one set-up, reduced to the gate's inputs, in one file for a repository; and the noise
// between runs.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/compare/invocation.h"

namespace gpubench {

// The noise file that `gpubench calibrate` writes and the gate reads.

inline constexpr std::string_view noise_schema_version = "1.1";

struct CaseNoise {
  int runs = 0;
  double spread = 0.0;  ///< standard deviation of log medians
  double range = 0.0;   ///< of log medians: largest minus smallest
  double median_ns = 0.0;
};

/// Applies to one set-up only.
struct Noise {
  std::string source;
  std::string created_at;
  int invocations = 0;
  Setup setup;
  std::map<std::string, CaseNoise> cases;
};

/// From two or more invocations of one build on one set-up, cases that passed in at least two. Throws
/// std::invalid_argument for fewer, or for different set-ups; differences() shows them.
[[nodiscard]] Noise noise_of(std::span<const Invocation> invocations, std::string created_at);

/// True if the median spread of the cases is 0.005% or more (shown as 0.01%), or without cases. False means that the
/// runs are copies of one report.
[[nodiscard]] bool has_noise(const Noise& noise);

/// Not set if the case was not calibrated.
[[nodiscard]] std::optional<Prior> prior_of(const Noise& noise, const std::string& case_id);

[[nodiscard]] Json to_json(const Noise& noise);
/// Throws ReadError, also for another major version, a fingerprint that does not match its set-up, spreads outside [0,
/// 10], and zero noise.
[[nodiscard]] Noise noise_from_json(const Node& node, const std::string& source);
[[nodiscard]] Noise read_noise(const std::string& path);

inline constexpr std::string_view baseline_schema_version = "1.2";

struct Baseline {
  std::string name;
  std::string created_at;
  std::vector<Invocation> invocations;
  std::optional<Noise> noise{};
};

/// Throws UsageError for no invocations, different set-ups (with the keys), a calibration of another set-up, and an
/// invocation that has an injected fault, is partial or occurs twice.
[[nodiscard]] Baseline make_baseline(std::string name, std::string created_at, std::vector<Invocation> invocations,
                                     std::optional<Noise> noise);

[[nodiscard]] Json to_json(const Baseline& baseline);
/// Throws ReadError. Does not check the digest.
[[nodiscard]] Baseline baseline_from_json(const Node& node, const std::string& source);

/// The sealed text of its file (report/content_digest.h).
[[nodiscard]] std::string baseline_text(const Baseline& baseline);
/// Throws ReadError, also if the digest does not match the content, or is missing from schema 1.2 on.
[[nodiscard]] Baseline parse_baseline(std::string_view text, const std::string& source);

struct SideFile {
  std::vector<Invocation> invocations;
  std::optional<Noise> noise{};  ///< of a baseline
};

/// Reads the reports and baselines of all sides in parallel. Throws ReadError for the first invalid file, prefixed with
/// the name of its side if it has one: "--baseline: file:...".
struct SidePaths {
  std::string_view name;
  std::span<const std::string> paths;
};
[[nodiscard]] std::vector<SideFile> read_sides(std::span<const SidePaths> sides);

}  // namespace gpubench

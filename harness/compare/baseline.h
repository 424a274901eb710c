// Baselines: the runs of one build on one set-up, reduced to what the gate reads, in one file that can be committed;
// and the noise between runs.
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

// Noise from run to run: the file that `gpubench calibrate` writes and the gate reads.

inline constexpr std::string_view noise_schema_version = "1.1";

struct CaseNoise {
  int runs = 0;            ///< invocations in which the case passed
  double spread = 0.0;     ///< standard deviation of its log medians
  double range = 0.0;      ///< the largest less the smallest of them
  double median_ns = 0.0;  ///< of the medians: so that a reader knows what it is the noise of
};

/// Noise belongs to one set-up, and says nothing about another.
struct Noise {
  std::string source;      ///< file that it was read from
  std::string created_at;  ///< "2026-11-21T02:34:19+00:00"
  int invocations = 0;
  Setup setup;
  std::map<std::string, CaseNoise> cases;
};

/// From invocations of one build on one set-up, at least two. Cases that passed in fewer than two of them are left out.
/// Throws std::invalid_argument for fewer, or for set-ups that differ (`differences` first, to say how).
[[nodiscard]] Noise noise_of(std::span<const Invocation> invocations, std::string created_at);

/// Whether runs differ at all: the median spread of the cases is 0.005% or more, what tables show as 0.01%. Runs of a
/// real machine do, copies of a report don't. True where there is no case.
[[nodiscard]] bool has_noise(const Noise& noise);

/// What the gate pools; empty for a case that was not calibrated.
[[nodiscard]] std::optional<Prior> prior_of(const Noise& noise, const std::string& case_id);

[[nodiscard]] Json to_json(const Noise& noise);
/// Throws ReadError, also for a file of another major version, a fingerprint that its set-up does not have, spreads
/// outside [0, 10], and no noise at all.
[[nodiscard]] Noise noise_from_json(const Node& node, const std::string& source);
[[nodiscard]] Noise read_noise(const std::string& path);

inline constexpr std::string_view baseline_schema_version = "1.2";

struct Baseline {
  std::string name;
  std::string created_at;
  std::vector<Invocation> invocations;  ///< of one set-up; at least one
  std::optional<Noise> noise{};         ///< a calibration of the same set-up
};

/// Pools invocations. Throws UsageError where there is none, where their set-ups differ (naming the keys), where one
/// has an injected fault, is partial or is there twice, and where the calibration is of another set-up.
[[nodiscard]] Baseline make_baseline(std::string name, std::string created_at, std::vector<Invocation> invocations,
                                     std::optional<Noise> noise);

[[nodiscard]] Json to_json(const Baseline& baseline);
/// Throws ReadError. Does not check the digest of the text.
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

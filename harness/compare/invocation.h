// What a comparison keeps of a report: its set-up, which decides whether two reports can be compared, and the verdict
// and time of each case.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/core/record.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"

namespace gpubench {

using Facts = std::vector<std::pair<std::string, std::string>>;  ///< key -> value

struct Setup {
  std::string device_kind;  ///< "cpu", "cuda"
  /// What changes numbers by itself: device, uuid, ECC, power limit, driver, limited instruction sets, libraries,
  /// telling variables, tier, preset, a locked clock, --deterministic, the build type, the major version of gpubench.
  Facts decisive;
  /// What should be known but should change nothing: host, compiler, revision, minor version, seed.
  Facts telling;
};

[[nodiscard]] Setup setup_of(const Report& report);

/// The noise to assume between runs on these set-ups where it was not measured: that of the noisier one (effect.h).
[[nodiscard]] double assumed_spread(const Setup& a, const Setup& b);

/// 16 hexadecimal digits over the decisive facts: equal for equal set-ups.
[[nodiscard]] std::string fingerprint(const Setup& setup);

/// One fact that differs; "(none)" stands for one that a side lacks.
struct Difference {
  std::string key;
  std::string baseline;
  std::string candidate;
};

/// Facts that differ, those of the first side in its order, then those that only the second one has.
[[nodiscard]] std::vector<Difference> differences(const Facts& baseline, const Facts& candidate);

/// One line: "onednn 2.6.3 -> 3.7.1".
[[nodiscard]] std::string difference_text(const Difference& difference);
/// All of them, with "; " between.
[[nodiscard]] std::string differences_text(const std::vector<Difference>& all);

/// Facts as an object of texts, and back. Throws ReadError.
[[nodiscard]] Json to_json(const Facts& facts);
[[nodiscard]] Facts facts_from_json(const Node& node);

/// A case as one invocation left it.
struct MeasuredCase {
  std::string id;
  std::string suite;
  Verdict verdict = Verdict::error;
  std::string reason;
  std::string def_hash;          ///< of what the id stands for; empty before schema 1.4
  double flop = 0.0;             ///< per run, algorithmic
  double bytes = 0.0;            ///< per run, compulsory
  double work_per_s = 0.0;       ///< the headline rate
  std::string unit;              ///< of it: "FLOP/s", "B/s", "tokens/s"
  std::optional<CaseRun> run{};  ///< of a case that passed
};

/// One process, one report.
struct Invocation {
  std::string source;      ///< file that it was read from
  std::string id;          ///< that no other run has; empty where the report has none (before 1.3)
  std::string started_at;  ///< "2026-11-21T02:34:19+00:00"
  bool complete = true;
  std::string injected;  ///< a fault that was asked for (--inject-slowdown, --inject-error); empty in an honest report
  Setup setup;
  std::vector<MeasuredCase> cases;  ///< in the order of the report, ids all different
  std::string contender{};          ///< which of several of its report; empty where there is one
};

/// A report as a user names it: "FILE", or "FILE#NAME" for the cases of one of its implementations.
struct NamedSource {
  std::string file;
  std::optional<std::string> contender{};
};
/// What is a file as it stands has no name behind it.
[[nodiscard]] NamedSource source_of(const std::string& path);

/// Reads a report from its text; `path` names it in messages. `contender`: of a report with implementations under test,
/// whose cases are taken ("reference": the device's own); none: the report has one only.
///
/// One that carries the digest of its content, as reports do since schema 1.6, is looked at as far as it is used; any
/// other by all that `validate` asks of it. Times are the device's own, for steps wall times, since waiting counts.
/// Throws ReadError unless it is a report of major version 1 with the digest of its content, for two cases of one id,
/// and for a passing case whose samples are not positive numbers.
[[nodiscard]] Invocation parse_invocation(std::string_view text, const std::string& path,
                                          const std::optional<std::string>& contender = {});

/// The same of a report that was read already; `source` names it in messages. Throws ReadError for a passing case whose
/// samples are not positive numbers.
[[nodiscard]] Invocation invocation_of(const Report& report, const std::string& source);

/// Slimmed for keeping (a baseline), and back; exact. Throws ReadError.
[[nodiscard]] Json to_json(const Invocation& invocation);
[[nodiscard]] Invocation invocation_from_json(const Node& node, const std::string& source);

/// Whether two reports are of one run: by the random ids of both; where one has none (before schema 1.3), by their
/// start and every time in them.
[[nodiscard]] bool one_run(const Invocation& a, const Invocation& b);

/// Throws UsageError, naming both files, where a run is there twice: copies of a report have no noise between them, and
/// make any difference look certain. `flag` begins the message; may be empty.
void refuse_repeats(std::span<const Invocation> invocations, std::string_view flag);

}  // namespace gpubench

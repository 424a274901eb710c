// The parts of a report that comparisons use: its set-up, which decides whether reports are comparable, and the verdict
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

using Facts = std::vector<std::pair<std::string, std::string>>;

struct Setup {
  std::string device_kind;
  /// Facts that change numbers: device, uuid, ECC, power limit, driver, limited instruction sets, libraries, variables
  /// that affect numbers, tier, preset, a locked clock, --deterministic, build type, major version of gpubench.
  Facts decisive;
  /// Facts without an expected effect: host, compiler, revision, minor version, seed.
  Facts telling;
};

[[nodiscard]] Setup setup_of(const Report& report);

/// The noise to assume without a measurement: that of the noisier set-up (effect.h).
[[nodiscard]] double assumed_spread(const Setup& a, const Setup& b);

/// 16 hexadecimal digits of a hash of the decisive facts.
[[nodiscard]] std::string fingerprint(const Setup& setup);

/// A fact that differs; "(none)" if a side lacks it.
struct Difference {
  std::string key;
  std::string baseline;
  std::string candidate;
};

/// In the order of the first side, then facts only in the second.
[[nodiscard]] std::vector<Difference> differences(const Facts& baseline, const Facts& candidate);

/// "onednn 2.6.3 -> 3.7.1".
[[nodiscard]] std::string difference_text(const Difference& difference);
[[nodiscard]] std::string differences_text(const std::vector<Difference>& all);

/// As an object of texts. facts_from_json() throws ReadError.
[[nodiscard]] Json to_json(const Facts& facts);
[[nodiscard]] Facts facts_from_json(const Node& node);

struct MeasuredCase {
  std::string id;
  std::string suite;
  Verdict verdict = Verdict::error;
  std::string reason;
  std::string def_hash;  ///< of the definition; empty before schema 1.4
  double flop = 0.0;     ///< algorithmic, per run
  double bytes = 0.0;    ///< compulsory, per run
  double work_per_s = 0.0;
  std::string unit;  ///< "FLOP/s", "B/s", "tokens/s"
  std::optional<CaseRun> run{};
};

/// One process, one report.
struct Invocation {
  std::string source;
  std::string id;  ///< unique; empty before schema 1.3
  std::string started_at;
  bool complete = true;
  std::string injected;  ///< by --inject-slowdown or --inject-error; empty: none
  Setup setup;
  std::vector<MeasuredCase> cases;  ///< in report order; ids differ
  std::string contender{};          ///< implementation in a report with several; empty: the only one
};

/// "FILE", or "FILE#NAME" for the cases of one implementation in the report.
struct NamedSource {
  std::string file;
  std::optional<std::string> contender{};
};
/// If the whole text names a file, no contender is split off.
[[nodiscard]] NamedSource source_of(const std::string& path);

/// Reads a report from its text; `path`: for messages. `contender`: of a report with implementations under test, the
/// one to take ("reference": the device's libraries); none if the report has only one.
///
/// Times are the device's; for steps, wall times, since waiting counts. A report with a content digest (since schema
/// 1.6) is checked as far as it is used, any other as by `validate`. Throws ReadError unless it is a report of major
/// version 1 with a matching digest, for two cases with one id, and for a passing case with samples that are not
/// positive.
[[nodiscard]] Invocation parse_invocation(std::string_view text, const std::string& path,
                                          const std::optional<std::string>& contender = {});

/// As parse_invocation(), from a report in memory. Throws ReadError for a passing case with samples that are not
/// positive.
[[nodiscard]] Invocation invocation_of(const Report& report, const std::string& source);

/// The reduced form of baselines; exact. invocation_from_json() throws ReadError.
[[nodiscard]] Json to_json(const Invocation& invocation);
[[nodiscard]] Invocation invocation_from_json(const Node& node, const std::string& source);

/// Compares random ids; before schema 1.3, the start and every time.
[[nodiscard]] bool one_run(const Invocation& a, const Invocation& b);

/// Throws UsageError, naming both files, if a run occurs twice: without noise between copies any difference looks
/// significant. `flag`: start of the message; may be empty.
void refuse_repeats(std::span<const Invocation> invocations, std::string_view flag);

}  // namespace gpubench

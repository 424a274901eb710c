// Where and how a report was measured, as far as it decides whether two reports can be compared.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/report/reader.h"
#include "harness/report/report_json.h"

namespace gpubench {

using Facts = std::vector<std::pair<std::string, std::string>>;  ///< key -> value

struct Setup {
  std::string device_kind;  ///< "cpu", "cuda"
  /// What changes numbers by itself: device, uuid, ECC, power limit, driver, limited instruction sets, libraries,
  /// telling variables, tier, preset, a locked clock, --deterministic, the build type, the major version of gpubench.
  Facts decisive;
  /// What should be known and changes nothing by rights: host, compiler, revision, minor version, seed.
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

/// Facts as an object of texts, and back. Throws ReadError.
[[nodiscard]] Json to_json(const Facts& facts);
[[nodiscard]] Facts facts_from_json(const Node& node);

}  // namespace gpubench

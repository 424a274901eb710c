// The limits of a device: published peaks, as a report's cases tell theirs (Derived::peak), and the best that the run
// itself reached in cases that say what the device can do: matrix products for arithmetic, copies and triads as in
// STREAM (McCalpin) for memory. Unreliable timings are no ceiling.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "harness/report/report_json.h"

namespace gpubench::page {

/// A limit in FLOP/s or B/s.
struct KnownCeiling {
  double value = 0.0;
  std::string source;  ///< who says so; of a measured one the case
};

struct KnownCeilings {
  std::map<std::string, KnownCeiling> published;  ///< of the arithmetic, by recipe
  std::map<std::string, KnownCeiling> measured;   ///< the best matrix product, by recipe
  std::optional<KnownCeiling> published_memory;
  std::optional<KnownCeiling> measured_memory;  ///< the best copy or triad, cold
  std::optional<KnownCeiling> link;             ///< between devices, one direction

  /// The published one, else the measured one; null where neither is known.
  [[nodiscard]] const KnownCeiling* arithmetic(const std::string& recipe) const;
  [[nodiscard]] const KnownCeiling* memory() const;
};

[[nodiscard]] KnownCeilings known_ceilings(const Report& report);

/// What a case is held against: its own limit's published peak, where it is known and of the headline's unit.
[[nodiscard]] std::optional<double> published_limit(const CaseRecord& record);

/// How near a case came to a ceiling: 0.75 of the "peak", the "link", else the "best gemm" or "best copy or triad".
struct CeilingShare {
  double fraction = 0.0;
  std::string_view of;
};
/// By the limit that binds the case: published where that is known, else measured. None where neither is.
[[nodiscard]] std::optional<CeilingShare> share_of_ceiling(const CaseRecord& record, const KnownCeilings& ceilings);

}  // namespace gpubench::page

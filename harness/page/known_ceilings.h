// The limits of a device, gathered from what a report's cases say of theirs (Derived::peak): published peaks, and the
// best that the run itself reached.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/report/report_json.h"

namespace gpubench::page {

/// A limit in FLOP/s or B/s.
struct KnownCeiling {
  double value = 0.0;
  std::string source;  ///< who says so; of a measured one the case
};

struct KnownCeilings {
  std::map<std::string, KnownCeiling> published;  ///< of the arithmetic, by recipe
  std::map<std::string, KnownCeiling> measured;   ///< the best gemm, by recipe
  std::optional<KnownCeiling> published_memory;
  std::optional<KnownCeiling> measured_memory;
  std::optional<KnownCeiling> link;  ///< between devices, one direction

  /// The published one, else the measured one; null where neither is known.
  [[nodiscard]] const KnownCeiling* arithmetic(const std::string& recipe) const;
  [[nodiscard]] const KnownCeiling* memory() const;
};

[[nodiscard]] KnownCeilings known_ceilings(const Report& report);

/// What a case is held against: its own limit's published peak, where it is known and of the headline's unit.
[[nodiscard]] std::optional<double> published_limit(const CaseRecord& record);

}  // namespace gpubench::page

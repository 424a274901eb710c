// Which units of an output are judged: all of them, or landmarks and a sample that is spread evenly and seeded.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// CheckUnits in ascending order, without a list of them where they are simply all.
class UnitChoice {
 public:
  [[nodiscard]] static UnitChoice all(std::int64_t count);
  /// Takes any order, with repetitions.
  [[nodiscard]] static UnitChoice some(std::vector<std::int64_t> units);

  [[nodiscard]] std::int64_t size() const { return everything_ ? count_ : static_cast<std::int64_t>(units_.size()); }
  [[nodiscard]] bool everything() const { return everything_; }
  /// The units at positions [first, first + count) of the choice.
  [[nodiscard]] std::vector<std::int64_t> slice(std::int64_t first, std::int64_t count) const;

 private:
  bool everything_ = false;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> units_;
};

/// fp64 work of judging one unit: the textbook's, and comparing each element with both ends of its rounding interval.
[[nodiscard]] double work_of_unit(const CheckUnits& units);

/// Everything where it costs at most `flop_budget`; else the landmarks, `suspects` (units with an element that looks
/// wrong, the most suspicious first, repeated or not; as many as the budget pays for), and one unit from each of as
/// many equal strata as the budget pays for, at a position that hashes from `key`.
[[nodiscard]] UnitChoice choose_units(const CheckUnits& units, double flop_budget, std::vector<std::int64_t> suspects,
                                      std::uint64_t key);

}  // namespace gpubench

// The elements that the check examines: a scan of all for poison and non-finite values, and the units of an output that
// the textbook judges (judge.h), which are all, or landmarks and an evenly spread seeded sample.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// The chosen units in ascending order; no list is stored if all are chosen.
class UnitChoice {
 public:
  [[nodiscard]] static UnitChoice all(std::int64_t count);
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

/// fp64 work of one unit: the textbook's, and comparing elements with both ends of their rounding intervals.
[[nodiscard]] double work_of_unit(const CheckUnits& units);

/// The same for the fewest units that choose_units() chooses.
[[nodiscard]] double min_work(const CheckUnits& units);

/// All units if that costs at most `flop_budget`; else the landmarks, as many `suspects` as the budget allows (units
/// with a suspicious element, the most suspicious first, possibly repeated), and one unit from each of as many equal
/// strata as the budget allows, at a position hashed from `key`.
[[nodiscard]] UnitChoice choose_units(const CheckUnits& units, double flop_budget, std::vector<std::int64_t> suspects,
                                      std::uint64_t key);

struct Scan {
  std::int64_t unwritten = 0;         ///< elements that hold the poison pattern
  std::int64_t first_unwritten = -1;  ///< logical linear index
  /// The first elements that must be judged: NaN, infinities, and the poison pattern where a result may hold it.
  std::vector<std::int64_t> suspects;
  /// Of floating types the finite elements with the eight largest magnitudes, then the four smallest: wrong exponent
  /// bits, wrong factors and missing terms show there.
  std::vector<std::int64_t> extremes;
};

/// Whether a correct result may hold the poison's bits (integers, one-byte types) and must be judged instead.
[[nodiscard]] bool poison_is_ambiguous(DType type);

/// Scans every logical element in place; of a device tensor only the few chunks with such elements are read. Keeps at
/// most `max_suspects`.
[[nodiscard]] Scan scan(const TensorView& output, std::int64_t max_suspects);

}  // namespace gpubench

// Where the check looks: a scan of every element for poison and values that are not finite, and the units of an output
// that the textbook judges (judge.h): all of them, or landmarks and a seeded sample that is spread evenly.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// The chosen units in ascending order; there is no list of them where every unit is chosen.
class UnitChoice {
 public:
  [[nodiscard]] static UnitChoice all(std::int64_t count);
  /// In any order, with repetitions.
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

/// That of the fewest units that choose_units() chooses.
[[nodiscard]] double min_work(const CheckUnits& units);

/// All units where that costs at most `flop_budget`; else the landmarks, `suspects` (units with an element that looks
/// wrong, the most suspicious first, possibly repeated; as many as the budget allows), and one unit from each of as
/// many equal strata as the budget allows, at a position that hashes from `key`.
[[nodiscard]] UnitChoice choose_units(const CheckUnits& units, double flop_budget, std::vector<std::int64_t> suspects,
                                      std::uint64_t key);

struct Scan {
  std::int64_t unwritten = 0;         ///< elements that hold the poison pattern
  std::int64_t first_unwritten = -1;  ///< logical linear index
  /// The first elements that must be judged: NaN, infinities, and (where a result may look like it) the poison pattern.
  std::vector<std::int64_t> suspects;
  /// Of floating types the finite elements with the eight largest magnitudes, then the four smallest: where a wrong
  /// exponent bit, a wrong factor or a missing term shows.
  std::vector<std::int64_t> extremes;
};

/// Whether a correct result may hold the same bits as the poison: integers, and types of one byte. There the pattern
/// alone proves nothing, and the element is judged like any other.
[[nodiscard]] bool poison_is_ambiguous(DType type);

/// Examines every logical element in place; of a tensor on a device only the few chunks with such elements are read.
/// Keeps at most `max_suspects`.
[[nodiscard]] Scan scan(const TensorView& output, std::int64_t max_suspects);

}  // namespace gpubench

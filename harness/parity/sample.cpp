#include "harness/parity/sample.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

// However dear a unit is, a fault that is spread over the whole output must meet a few of them.
constexpr std::int64_t fewest_strata = 16;

// Rounding two ends, comparing, and keeping the tally of one element takes as long as about this many fp64 operations.
constexpr double comparison_flop = 16.0;

}  // namespace

double work_of_unit(const CheckUnits& units) {
  return units.flop_per_unit + comparison_flop * static_cast<double>(units.elements);
}

UnitChoice UnitChoice::all(std::int64_t count) {
  UnitChoice choice;
  choice.everything_ = true;
  choice.count_ = count;
  return choice;
}

UnitChoice UnitChoice::some(std::vector<std::int64_t> units) {
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  UnitChoice choice;
  choice.units_ = std::move(units);
  return choice;
}

std::vector<std::int64_t> UnitChoice::slice(std::int64_t first, std::int64_t count) const {
  if (!everything_) return {units_.begin() + first, units_.begin() + first + count};
  std::vector<std::int64_t> units(static_cast<std::size_t>(count));
  std::iota(units.begin(), units.end(), first);
  return units;
}

UnitChoice choose_units(const CheckUnits& units, double flop_budget, std::vector<std::int64_t> suspects,
                        std::uint64_t key) {
  const double affordable = flop_budget / work_of_unit(units);
  if (static_cast<double>(units.count) <= affordable || units.count <= fewest_strata)
    return UnitChoice::all(units.count);

  std::set<std::int64_t> met;
  std::erase_if(suspects, [&](std::int64_t unit) { return !met.insert(unit).second; });
  const auto most_suspects = static_cast<std::size_t>(std::max(affordable, static_cast<double>(fewest_strata)));
  if (suspects.size() > most_suspects) suspects.resize(most_suspects);  // the first ones settle the verdict
  const auto paid = static_cast<std::int64_t>(affordable) - static_cast<std::int64_t>(units.landmarks.size());
  const std::int64_t strata = std::min(units.count, std::max(paid, fewest_strata));
  std::vector<std::int64_t> chosen = units.landmarks;
  for (std::int64_t stratum = 0; stratum < strata; ++stratum) {
    // Quotient and remainder apart, because stratum * count may not fit 64 bits.
    const auto border = [&](std::int64_t i) { return i * (units.count / strata) + std::min(i, units.count % strata); };
    const auto width = static_cast<std::uint64_t>(border(stratum + 1) - border(stratum));
    chosen.push_back(border(stratum) +
                     static_cast<std::int64_t>(hash_at(key, static_cast<std::uint64_t>(stratum)) % width));
  }
  chosen.insert(chosen.end(), suspects.begin(), suspects.end());
  return UnitChoice::some(std::move(chosen));
}

}  // namespace gpubench

#include "harness/parity/probe_exponents.h"

#include <algorithm>

namespace gpubench {
namespace {

// With fewer E there is nothing to tell apart.
constexpr int fewest = 5;

std::optional<ExponentPlan> plan_up_to(int last, int variants, int unit, const Exponents& left, const Exponents& right,
                                       std::int64_t most_rows) {
  ExponentPlan s;
  s.last = last;
  s.variants = variants;
  s.one_left = std::clamp(unit / 2, std::max(left.least, unit - right.most), std::min(left.most, unit - right.least));
  s.one_right = unit - s.one_left;
  s.rows = (s.count() + variants - 1) / variants;
  const int low = std::max(left.least, s.first + unit + (variants - 1) * s.rows - right.most);
  const int high = std::min(left.most - s.rows + 1, s.first + unit - right.least);
  if (s.rows > most_rows || low > high) return std::nullopt;
  s.left = std::clamp((s.first + unit) / 2, low, high);
  s.right = s.first + unit - s.left;
  return s;
}

}  // namespace

int least_unit(const ProbeData& data) {
  const Exponents left = data.left_range(), right = data.right_range();
  const bool narrow = left.most < most_exponent || right.most < most_exponent;
  int unit = narrow ? left.least + right.least : 0;
  if (narrow && bits_of(data.left_type()) != 4) unit = std::max(unit, least_f16_exponent);
  if (data.output_type() == DType::f16) unit = std::max(unit, least_f16_exponent - data.factor_exponent());
  return unit;
}

std::optional<ExponentPlan> plan_exponents(const Exponents& left, const Exponents& right, int unit, int enough,
                                           std::int64_t most_rows, std::int64_t most_columns) {
  const int most = std::min(most_exponent, left.most + right.most - unit);
  std::optional<ExponentPlan> best;
  for (int variants = 1; 2 * variants <= most_columns && variants <= most; ++variants) {
    for (int last = most; last > fewest; --last) {
      const std::optional<ExponentPlan> plan = plan_up_to(last, variants, unit, left, right, most_rows);
      if (!plan) continue;
      if (!best || plan->last > best->last) best = plan;
      break;
    }
    if (best && best->last >= std::min(enough, most)) break;
  }
  return best;
}

}  // namespace gpubench

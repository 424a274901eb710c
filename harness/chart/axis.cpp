#include "harness/chart/axis.h"

#include <algorithm>
#include <cmath>

namespace gpubench::chart {
namespace {

// A linear axis has about this many steps and ends on a multiple of the step.
constexpr double linear_steps = 5.0;

double next_one_two_five(double value, bool upward) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  // Sums and quotients of what was written in decimal miss a round number by a rounding error.
  constexpr double slack = 1e-9;
  if (upward) {
    for (const double factor : {1.0, 2.0, 5.0})
      if (value <= factor * decade * (1.0 + slack)) return factor * decade;
    return 10.0 * decade;
  }
  double found = decade;
  for (const double factor : {2.0, 5.0, 10.0})
    if (value >= factor * decade * (1.0 - slack)) found = factor * decade;
  return found;
}

double round_out(Scale scale, double value, double step, bool upward) {
  switch (scale) {
    case Scale::linear: return step * (upward ? std::ceil(value / step - 1e-9) : std::floor(value / step + 1e-9));
    case Scale::log2: return std::exp2(upward ? std::ceil(std::log2(value)) : std::floor(std::log2(value)));
    case Scale::log10: return next_one_two_five(value, upward);
  }
  return value;
}

}  // namespace

void Extent::include(double value) {
  low = std::min(low.value_or(value), value);
  high = std::max(high.value_or(value), value);
}

bool drawable(const Axis& axis, double value) {
  return std::isfinite(value) && (axis.scale == Scale::linear || value > 0.0);
}

AxisScale::AxisScale(const Axis& axis, const Extent& data, Ends ends) : axis_(axis) {
  const auto given = [&](const std::optional<double>& end) {
    return end && drawable(axis, *end) ? end : std::optional<double>();
  };
  std::optional<double> first = given(axis.low);
  std::optional<double> last = given(axis.high);
  if (first && last && !(*first < *last)) first = last = std::nullopt;
  const bool logarithmic = axis.scale != Scale::linear;
  low_ = first ? *first : data.low.value_or(logarithmic ? 1.0 : 0.0);
  high_ = last ? *last : data.high.value_or(low_);
  if (!(low_ < high_)) {  // one value, or an end given beyond the data
    const double room = logarithmic ? 0.0 : low_ == 0.0 ? 1.0 : 0.5 * std::fabs(low_);
    const double middle = last ? high_ : low_;
    if (!last) high_ = logarithmic ? middle * 2.0 : middle + room;
    if (!first) low_ = logarithmic ? middle / 2.0 : middle - room;
  }
  if (ends == Ends::data) return;
  const double step = logarithmic ? 0.0 : round_step((high_ - low_) / linear_steps * 1.5, axis.labels);
  if (!first) low_ = round_out(axis.scale, low_, step, false);
  if (!last) high_ = round_out(axis.scale, high_, step, true);
}

double AxisScale::position(double value) const {
  if (axis_.scale == Scale::linear) return (value - low_) / (high_ - low_);
  return std::log2(value / low_) / std::log2(high_ / low_);
}

bool AxisScale::holds(double value) const { return drawable(axis_, value) && value >= low_ && value <= high_; }

double round_step(double value, TickLabels labels) {
  if (labels == TickLabels::bytes) return std::exp2(std::floor(std::log2(value)));
  return next_one_two_five(value, false);
}

}  // namespace gpubench::chart

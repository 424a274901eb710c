#include "harness/page/chart/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/core/text/quantity.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {
namespace {

// A linear axis has about this many steps and ends on a multiple of the step.
constexpr double linear_steps = 5.0;

double next_one_two_five(double value, bool upward) {
  const double decade = std::pow(10.0, std::floor(std::log10(value)));
  // Sums and quotients of decimals miss a round number by a rounding error.
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
  if (!(low_ < high_)) {  // a single value, or an end given beyond the data
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

namespace {

struct Prefix {
  double factor;
  std::string_view text;
};

constexpr std::array<Prefix, 7> decimal{
    {{1.0, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}, {1e18, "E"}}};
constexpr std::array<Prefix, 7> binary{{{1.0, " B"},
                                        {0x1p10, " KiB"},
                                        {0x1p20, " MiB"},
                                        {0x1p30, " GiB"},
                                        {0x1p40, " TiB"},
                                        {0x1p50, " PiB"},
                                        {0x1p60, " EiB"}}};
constexpr std::array<Prefix, 4> nanoseconds{{{1.0, " ns"}, {1e3, " us"}, {1e6, " ms"}, {1e9, " s"}}};
constexpr std::array<Prefix, 1> percent{{{0.01, "%"}}};
constexpr std::array<Prefix, 1> none{{{1.0, ""}}};

std::span<const Prefix> prefixes(TickLabels labels) {
  switch (labels) {
    case TickLabels::plain: return none;
    case TickLabels::si: return decimal;
    case TickLabels::bytes: return binary;
    case TickLabels::percent: return percent;
    case TickLabels::time_ns: return nanoseconds;
  }
  return none;
}

const Prefix& prefix_of(double value, std::span<const Prefix> all) {
  const Prefix* found = &all.front();
  for (const Prefix& prefix : all)
    if (std::fabs(value) >= prefix.factor * (1.0 - 1e-9)) found = &prefix;
  return *found;
}

// Decimals that distinguish multiples of the step: 0.25 -> 2, 20 -> 0.
int decimals_of(double step) {
  int decimals = 0;
  while (decimals < 9 && std::fabs(step - std::round(step)) > 1e-6 * step) {
    step *= 10.0;
    ++decimals;
  }
  return decimals;
}

std::string written(double value, double step) {
  if (step == 0.0) {
    const std::string text = fmt::format("{:.4g}", value);
    return text.find('e') == std::string::npos || std::fabs(value) >= 1e6 || std::fabs(value) < 1e-4
               ? text
               : format_count(std::llround(value));
  }
  if (std::fabs(value) >= 1e7 || step < 1e-6) return fmt::format("{:.6g}", value);
  const int decimals = decimals_of(step);
  if (decimals == 0 && std::fabs(value) >= 1e4) return format_count(std::llround(value));
  return fmt::format("{:.{}f}", value, decimals);
}

// "GFLOP/s" and "TB/s", but not "ktokens/s".
bool takes_prefix(std::string_view unit) {
  const std::string_view base = unit.substr(0, unit.find('/'));
  return base == "FLOP" || base == "B" || base == "Hz" || base == "J" || base == "W";
}

// Over more decades one prefix makes the labels at one end long.
constexpr double max_decades = 8.0;

// The prefix shown in the title instead of the labels; null: a prefix per label.
const Prefix* shared_prefix(const AxisScale& scale) {
  const Axis& axis = scale.axis();
  if (axis.labels != TickLabels::si || !takes_prefix(axis.unit)) return nullptr;
  if (axis.scale == Scale::linear)
    return &prefix_of(std::max(std::fabs(scale.low()), std::fabs(scale.high())), decimal);
  if (std::log10(scale.high() / scale.low()) > max_decades) return nullptr;
  return &prefix_of(std::sqrt(scale.low()) * std::sqrt(scale.high()), decimal);
}

}  // namespace

std::string axis_title(const AxisScale& scale) {
  const Axis& axis = scale.axis();
  if (axis.unit.empty()) return axis.title;
  const Prefix* shared = shared_prefix(scale);
  const std::string unit = (shared != nullptr ? std::string(shared->text) : std::string()) + axis.unit;
  return axis.title.empty() ? unit : axis.title + " (" + unit + ")";
}

std::vector<std::string> tick_labels(const AxisScale& scale, std::span<const double> values, double step) {
  const Axis& axis = scale.axis();
  const Prefix* shared = shared_prefix(scale);
  const std::span<const Prefix> all = prefixes(axis.labels);
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  std::vector<std::string> labels;
  for (const double value : values) {
    // Bytes and values that are powers apart get a prefix each: 512 KiB, 1 MiB.
    const bool own = axis.scale != Scale::linear || axis.labels == TickLabels::bytes;
    const Prefix& prefix = shared != nullptr ? *shared : prefix_of(own ? value : largest, all);
    if (value == 0.0) {
      labels.push_back(axis.labels == TickLabels::percent ? "0%" : "0");
    } else {
      const double unit_step = axis.labels == TickLabels::bytes ? 0.0 : step / prefix.factor;
      const std::string number = written(value / prefix.factor, unit_step);
      labels.push_back(shared != nullptr ? number : number + std::string(prefix.text));
    }
  }
  return labels;
}

namespace {

// Keeps a value at the end of the axis despite the rounding of a logarithm or a product.
constexpr double slack = 1e-9;

struct TickSet {
  std::vector<double> values;
  double step = 0.0;
};

TickSet multiples(const AxisScale& scale, double step) {
  TickSet set{{}, step};
  const double first = std::ceil(scale.low() / step - slack);
  const double last = std::floor(scale.high() / step + slack);
  // Each is computed from the first tick, so that rounding errors don't accumulate.
  for (double i = first; i <= last; i += 1.0) set.values.push_back(i * step + 0.0);
  return set;
}

TickSet powers(const AxisScale& scale, double base, int stride) {
  TickSet set;
  const double first = std::log2(scale.low()) / std::log2(base);
  const double last = std::log2(scale.high()) / std::log2(base);
  for (int e = static_cast<int>(std::ceil(first - slack)); e <= static_cast<int>(std::floor(last + slack)); ++e)
    if (e % stride == 0) set.values.push_back(std::pow(base, e));
  return set;
}

TickSet one_two_five(const AxisScale& scale) {
  TickSet set;
  for (int e = static_cast<int>(std::floor(std::log10(scale.low()) - slack)); std::pow(10.0, e) <= scale.high(); ++e) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10.0, e);
      if (value >= scale.low() * (1.0 - slack) && value <= scale.high() * (1.0 + slack)) set.values.push_back(value);
    }
  }
  return set;
}

// For logarithmic axes, too: within less than an octave there may be no power of two or ten.
void add_linear(const AxisScale& scale, int most, std::vector<TickSet>& sets) {
  double step = round_step((scale.high() - scale.low()) / most, scale.axis().labels);
  for (int i = 0; i < 8; ++i) {
    sets.push_back(multiples(scale, step));
    step = round_step(step * (scale.axis().labels == TickLabels::bytes ? 2.0 : 2.5), scale.axis().labels);
  }
}

std::vector<TickSet> candidates(const AxisScale& scale, int most) {
  std::vector<TickSet> sets;
  if (scale.axis().scale == Scale::log2) {
    // For bytes: strides that hit 1 KiB, 1 MiB and 1 GiB.
    for (const int stride : {1, 2, 5, 10, 20}) sets.push_back(powers(scale, 2.0, stride));
  } else if (scale.axis().scale == Scale::log10) {
    sets.push_back(one_two_five(scale));
    for (const int stride : {1, 2, 3, 6, 12}) sets.push_back(powers(scale, 10.0, stride));
  }
  const bool few = std::all_of(sets.begin(), sets.end(), [](const TickSet& set) { return set.values.size() < 2; });
  if (few) {
    sets.clear();
    add_linear(scale, most, sets);
  }
  return sets;
}

std::vector<Tick> labelled(const AxisScale& scale, const TickSet& set) {
  const std::vector<std::string> labels = tick_labels(scale, set.values, set.step);
  std::vector<Tick> found;
  for (std::size_t i = 0; i < set.values.size(); ++i) found.push_back({set.values[i], labels[i]});
  return found;
}

}  // namespace

std::vector<Tick> ticks(const AxisScale& scale, int most, const std::function<bool(std::span<const Tick>)>& fits) {
  std::vector<Tick> last;
  for (const TickSet& set : candidates(scale, most)) {
    if (set.values.empty()) continue;
    if (set.values.size() > static_cast<std::size_t>(most)) {
      last = labelled(scale, {{set.values.front(), set.values.back()}, set.step});
      continue;
    }
    std::vector<Tick> found = labelled(scale, set);
    if (fits(found)) return found;
    last = {found.front(), found.back()};
  }
  if (last.size() == 2 && fits(last)) return last;
  if (!last.empty()) last.resize(1);
  return last;
}

std::vector<PlacedTick> ticks_below(const AxisScale& scale, const std::function<double(double)>& at) {
  constexpr int most = 8;
  constexpr double gap = 10.0;
  const auto width = [](const Tick& tick) { return text_width(tick.label, text_size); };
  const auto middle = [&](const Tick& tick) {
    const double half = width(tick) / 2.0;
    return std::clamp(at(tick.value), half + 2.0, chart_width - half - 2.0);
  };
  std::vector<PlacedTick> placed;
  for (const Tick& tick : ticks(scale, most, [&](std::span<const Tick> found) {
         for (std::size_t i = 1; i < found.size(); ++i) {
           const double needed = (width(found[i - 1]) + width(found[i])) / 2.0;
           if (middle(found[i]) - middle(found[i - 1]) < needed + gap) return false;
         }
         return true;
       }))
    placed.push_back({tick, middle(tick)});
  return placed;
}

}  // namespace gpubench::chart

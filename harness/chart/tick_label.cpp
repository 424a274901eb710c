#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/chart/axis.h"
#include "harness/report/quantity.h"

namespace gpubench::chart {
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

// Decimals that tell multiples of the step apart: 0.25 -> 2, 20 -> 0.
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

// People say GFLOP/s and TB/s, but not "ktokens/s".
bool takes_prefix(std::string_view unit) {
  const std::string_view base = unit.substr(0, unit.find('/'));
  return base == "FLOP" || base == "B" || base == "Hz" || base == "J" || base == "W";
}

// Over more decades than this one prefix would make the labels at one end long.
constexpr double most_decades = 8.0;

// The prefix that all labels of the axis leave out; null: each has its own.
const Prefix* shared_prefix(const AxisScale& scale) {
  const Axis& axis = scale.axis();
  if (axis.labels != TickLabels::si || !takes_prefix(axis.unit)) return nullptr;
  if (axis.scale == Scale::linear)
    return &prefix_of(std::max(std::fabs(scale.low()), std::fabs(scale.high())), decimal);
  if (std::log10(scale.high() / scale.low()) > most_decades) return nullptr;
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
    // Bytes read better each with its own: 512 KiB, 1 MiB; so do values that are powers apart.
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

}  // namespace gpubench::chart

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
               : fmt::format("{:.0f}", value);
  }
  if (std::fabs(value) >= 1e7 || step < 1e-6) return fmt::format("{:.6g}", value);
  const int decimals = decimals_of(step);
  if (decimals == 0 && std::fabs(value) >= 1e4) return format_count(std::llround(value));
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::vector<std::string> tick_labels(const Axis& axis, std::span<const double> values, double step) {
  const std::span<const Prefix> all = prefixes(axis.labels);
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  std::vector<std::string> labels;
  for (const double value : values) {
    // Bytes read better each with its own: 512 KiB, 1 MiB; so do values that are powers apart.
    const bool own = axis.scale != Scale::linear || axis.labels == TickLabels::bytes;
    const Prefix& prefix = prefix_of(own ? value : largest, all);
    if (value == 0.0) {
      labels.push_back(axis.labels == TickLabels::percent ? "0%" : "0");
    } else {
      const double unit_step = axis.labels == TickLabels::bytes ? 0.0 : step / prefix.factor;
      labels.push_back(written(value / prefix.factor, unit_step) + std::string(prefix.text));
    }
  }
  return labels;
}

}  // namespace gpubench::chart

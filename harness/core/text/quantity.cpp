#include "harness/core/text/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

namespace gpubench {
namespace {

struct Prefix {
  double factor;
  std::string_view text;
};

constexpr Prefix decimal_prefixes[] = {{1.0, ""},   {1e3, "k"},  {1e6, "M"}, {1e9, "G"},
                                       {1e12, "T"}, {1e15, "P"}, {1e18, "E"}};

std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// Uses the largest prefix that leaves the rounded number a digit before the point.
std::string scaled(double value, std::span<const Prefix> prefixes, std::string_view unit) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const Prefix* chosen = &prefixes.front();
  for (const Prefix& prefix : prefixes) {
    if (std::fabs(value) >= prefix.factor * 0.9995) chosen = &prefix;
  }
  return fmt::format("{} {}{}", three_digits(value / chosen->factor), chosen->text, unit);
}

}  // namespace

std::string format_quantity(double value, std::string_view unit) {
  if (value == 0.0) return fmt::format("0 {}", unit);  // exact zero: a copy computes 0 FLOP
  if (std::fabs(value) < 0.9995) return fmt::format("{:.3g} {}", value, unit);
  return scaled(value, decimal_prefixes, unit);
}

std::string format_with_prefix(double value, std::string_view unit, char prefix) {
  const auto* const chosen = std::ranges::find(decimal_prefixes, std::string_view(&prefix, 1), &Prefix::text);
  if (chosen == std::end(decimal_prefixes) || !(value > 0.0) || !std::isfinite(value))
    return format_quantity(value, unit);
  const double part = value / chosen->factor;
  const std::string number = part < 0.001      ? "<0.001"
                             : part < 0.009995 ? fmt::format("{:.5f}", part)
                             : part < 0.09995  ? fmt::format("{:.4f}", part)
                             : part < 0.9995   ? fmt::format("{:.3f}", part)
                                               : three_digits(part);
  return fmt::format("{} {}{}", number, prefix, unit);
}

std::string format_time_ns(double nanoseconds) {
  static constexpr Prefix prefixes[] = {{1.0, "n"}, {1e3, "u"}, {1e6, "m"}, {1e9, ""}};
  return scaled(nanoseconds, prefixes, "s");
}

std::string format_duration(double seconds) {
  if (seconds == 0.0) return "0 s";
  if (!(seconds >= 99.5)) return format_time_ns(seconds * 1e9);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

std::string format_count(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string format_exact(double value) { return fmt::format("{}", value); }

std::string format_interval(double median, double low, double high) {
  const double half = 0.5 * (high - low) / median;
  if (!(half > 0.0) || !std::isfinite(half)) return "-";
  if (half > 1.0) return ">100%";
  return half < 0.0995 ? fmt::format("{:.1f}%", 100.0 * half) : fmt::format("{:.0f}%", 100.0 * half);
}

}  // namespace gpubench

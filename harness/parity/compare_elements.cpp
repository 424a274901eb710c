#include "harness/parity/compare_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/parity/judge.h"
#include "harness/parity/rounding.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

constexpr std::size_t max_wrong = std::size_t{1} << 20U;
constexpr std::int64_t warp_lanes = 32;
constexpr double usual_part = 0.99;  // of a bound: so far inside that rounding in fp64 decides nothing

constexpr double infinity = std::numeric_limits<double>::infinity();

// e4m3 rounds overflow to NaN, where other types have an infinity.
bool accepts_without_infinity(double low, double high, DType type, double got) {
  const bool overflows = std::isnan(rounded(type, low)) || std::isnan(rounded(type, high));
  if (std::isnan(got)) return overflows;
  const auto limit = [type](double value) {
    return std::isnan(rounded(type, value)) ? std::copysign(infinity, value) : rounded(type, value);
  };
  return limit(low) <= got && got <= limit(high);
}

class Mutants {
 public:
  Mutants(std::span<const CheckedElement> panel, DType type) : panel_(panel), type_(type) {}

  // Corrupts one element at a time, of those with or without a NaN reference; each must be rejected.
  template <class Corrupt>
  void each(const char* what, Corrupt corrupt, bool where_nan = false) {
    int possible = 0;
    int rejected = 0;
    for (const CheckedElement& s : panel_) {
      if (std::isnan(s.judged.value) != where_nan) continue;
      ++possible;
      rejected += rejects(s, corrupt(s)) ? 1 : 0;
    }
    if (possible > 0) conclude(what, rejected == possible);
  }

  template <class Corrupt>
  void all(const char* what, Corrupt corrupt) {
    conclude(what, std::any_of(panel_.begin(), panel_.end(), [&](const CheckedElement& s) {
               return !std::isnan(s.judged.value) && rejects(s, corrupt(s));
             }));
  }

  // Corrupts every 32nd element, including the most sensitive one, which is last in the panel; the whole must be
  // rejected. Requires a reference that is not NaN.
  template <class Corrupt>
  void lane(const char* what, Corrupt corrupt) {
    const auto last = std::find_if(panel_.rbegin(), panel_.rend(),
                                   [](const CheckedElement& s) { return !std::isnan(s.judged.value); });
    const std::int64_t lane = last->linear % warp_lanes;
    conclude(what, std::any_of(panel_.begin(), panel_.end(), [&](const CheckedElement& s) {
               return s.linear % warp_lanes == lane && !std::isnan(s.judged.value) && rejects(s, corrupt(s));
             }));
  }

  [[nodiscard]] MutationReport report() const { return report_; }

 private:
  [[nodiscard]] bool rejects(const CheckedElement& s, double got) const {
    Tally tally;
    compare(s.linear, std::span(&s.judged, 1), type_, std::span(&got, 1), tally);
    return tally.bad > 0;
  }

  void conclude(const char* what, bool rejected) {
    ++report_.tried;
    if (rejected)
      ++report_.rejected;
    else
      report_.accepted.push_back(what);
  }

  std::span<const CheckedElement> panel_;
  DType type_;
  MutationReport report_;
};

// The three bits below the sign: real silent corruption flips several together (arXiv 2605.04213).
double with_flipped_bits(DType type, double value) {
  std::array<std::byte, sizeof(double)> stored{};
  store(type, stored.data(), value);
  flip_bits(type, stored.data(), 0, std::uint64_t{7} << (bits_of(type) - 4));
  return load(type, stored.data());
}

// A stored number just outside the interval: four times the allowed distance, on a side that has room.
double beyond(const Expected& judged, DType type) {
  if (std::isinf(judged.value)) return 0.0;
  const double step = 4.0 * (judged.bound + 2.0 * half_ulp(type, judged.value));
  const double up = rounded(type, judged.value + step);
  const bool room = std::isfinite(up) && up - judged.value > 0.5 * step;
  return room ? up : rounded(type, judged.value - step);
}

}  // namespace

bool accepts(const Expected& judged, DType type, double got) {
  if (std::isnan(judged.value)) return std::isnan(got);
  if (std::isinf(judged.value)) return got == judged.value;
  if (judged.bitwise && std::signbit(got) != std::signbit(judged.value)) return false;  // -0 == 0, but the bits differ
  const double low = judged.value - judged.bound;
  const double high = judged.value + judged.bound;
  if (type == DType::f8_e4m3 && !std::isnan(judged.bound)) return accepts_without_infinity(low, high, type, got);
  return rounded(type, low) <= got && got <= rounded(type, high);  // false when anything is NaN
}

namespace {

// The distance of the true value to the numbers that round to `got`.
double unexplained(double value, const HalfUlp& half_ulp, double got) {
  const double distance = std::fabs(got - value);
  if (!(distance > 0.0)) return distance;  // equal, or NaN
  return std::max(distance - half_ulp(std::nextafter(got, value)), 0.0);
}

double ratio_of(const Expected& judged, const HalfUlp& half_ulp, double got, bool accepted) {
  if (std::isnan(judged.bound)) return accepted ? 0.0 : infinity;
  const bool exact = !(judged.bound > 0.0);
  // The bound of an exact op is zero, so the unit is half an ulp.
  const double ratio = exact ? std::fabs(got - judged.value) / half_ulp(judged.value)
                             : unexplained(judged.value, half_ulp, got) / judged.bound;
  if (accepted) return exact || std::isnan(ratio) ? 0.0 : std::fmin(ratio, 1.0);  // NaN where both are, or an infinity
  return std::isfinite(ratio) ? std::fmax(ratio, std::nextafter(1.0, 2.0)) : infinity;
}

}  // namespace

double error_over_bound(const Expected& judged, DType type, double got) {
  return ratio_of(judged, HalfUlp(type), got, accepts(judged, type, got));
}

void Tally::add(const Tally& later) {
  const std::size_t room = max_wrong - std::min(max_wrong, wrong.size());
  wrong.insert(wrong.end(), later.wrong.begin(),
               later.wrong.begin() + static_cast<std::ptrdiff_t>(std::min(room, later.wrong.size())));
  judged += later.judged;
  bad += later.bad;
  if (later.worst.linear >= 0 && (worst.linear < 0 || later.error_over_bound > error_over_bound)) {
    error_over_bound = later.error_over_bound;
    worst = later.worst;
  }
  if (later.most_sensitive_ratio > most_sensitive_ratio) {
    most_sensitive_ratio = later.most_sensitive_ratio;
    most_sensitive = later.most_sensitive;
  }
}

void compare(std::int64_t first, std::span<const Expected> judged, DType type, std::span<const double> got,
             Tally& tally) {
  const HalfUlp half_ulp(type);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Expected& j = judged[i];
    const auto linear = first + static_cast<std::int64_t>(i);
    ++tally.judged;
    // Most elements are accepted here, and are not the worst.
    const bool is_equal = got[i] == j.value && j.value != 0.0 && j.bound >= 0.0;  // the sign of zeros may count
    const bool is_near =
        !j.bitwise && std::fabs(got[i] - j.value) < std::min(tally.error_over_bound, usual_part) * j.bound;
    const bool is_usual = tally.worst.linear >= 0 && (is_equal || is_near);
    if (!is_usual) {
      const bool accepted = accepts(j, type, got[i]);
      const double ratio = ratio_of(j, half_ulp, got[i], accepted);
      if (!accepted) {
        ++tally.bad;
        if (tally.wrong.size() < max_wrong) tally.wrong.push_back({linear, got[i]});
      }
      if (tally.worst.linear < 0 || ratio > tally.error_over_bound) {
        tally.error_over_bound = ratio;
        tally.worst = {linear, j, got[i]};
      }
    }
    const double spread = j.bound + half_ulp(j.value);
    if (std::fabs(j.value) > tally.most_sensitive_ratio * spread && std::isfinite(j.value)) {
      tally.most_sensitive_ratio = std::fabs(j.value) / spread;
      tally.most_sensitive = {linear, j, got[i]};
    }
  }
}

MutationReport mutate(std::span<const CheckedElement> panel, DType type) {
  Mutants mutants(panel, type);
  if (is_float(type))
    mutants.each("NaN", [](const CheckedElement&) { return std::numeric_limits<double>::quiet_NaN(); });
  mutants.each("a step beyond the bound", [type](const CheckedElement& s) { return beyond(s.judged, type); });
  mutants.each(
      "a number for NaN", [](const CheckedElement&) { return 0.0; }, true);
  const bool something = std::any_of(panel.begin(), panel.end(), [type](const CheckedElement& s) {
    return !std::isnan(s.judged.value) && rounded(type, s.judged.value) != 0.0;
  });
  if (something) {
    mutants.all("zeros", [](const CheckedElement&) { return 0.0; });
    const bool is_signed = type != DType::u8;
    if (is_signed) mutants.all("flipped signs", [](const CheckedElement& s) { return -s.got; });
    mutants.lane("three bits of a lane", [type](const CheckedElement& s) { return with_flipped_bits(type, s.got); });
  }
  return mutants.report();
}

}  // namespace gpubench

#include "harness/core/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gpubench {

Verdict worse(Verdict a, Verdict b) {
  static constexpr std::array order{Verdict::error,      Verdict::fail,        Verdict::downgraded, Verdict::not_proven,
                                    Verdict::unverified, Verdict::unsupported, Verdict::skipped,    Verdict::pass};
  for (const Verdict candidate : order) {
    if (a == candidate || b == candidate) return candidate;
  }
  return Verdict::error;
}

bool consists_of(const CaseRecord& record, std::initializer_list<std::string_view> kinds) {
  const Parity& parity = record.parity;
  const auto is_one = [&](const auto& op) { return std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end(); };
  return !parity.ops.empty() && std::ranges::all_of(parity.ops, is_one) &&
         (!parity.passed || std::ranges::all_of(*parity.passed, is_one));
}

bool is_stream(const CaseRecord& record) { return consists_of(record, {"copy", "triad"}); }

std::optional<double> half_width(const Summary& summary) {
  const double half = 0.5 * (summary.ci95_high_ns - summary.ci95_low_ns) / summary.median_ns;
  if (summary.rounds < 2 || !(summary.median_ns > 0.0) || !std::isfinite(half)) return std::nullopt;
  return half;
}

namespace {

double inconclusive_reason(double share, const Summary& whole) {
  const double no_interval = std::numeric_limits<double>::infinity();
  return std::fabs(share) * half_width(whole).value_or(no_interval) * std::sqrt(2.0);
}

}  // namespace

bool timing_unreliable(const Summary& summary) {
  if (summary.rounds < 1) return false;
  const std::optional<double> half = half_width(summary);
  return !half || !(*half <= max_half_width);
}

bool share_is_reliable(double share, const Summary& whole) {
  return inconclusive_reason(share, whole) <= max_half_width;
}

std::optional<double> reliable_remainder(const CaseRecord& record) {
  const double remainder = record.derived.remainder;
  const bool sure = !record.derived.breakdown.empty() && share_is_reliable(1.0 - remainder, record.summary);
  return sure ? std::optional(remainder) : std::nullopt;
}

std::optional<double> reliable_exposed(const CaseRecord& record) {
  if (!record.derived.ranks || !record.derived.ranks->exposed_communication) return std::nullopt;
  const double exposed = *record.derived.ranks->exposed_communication;
  const double computing = 1.0 - exposed;
  const bool sure =
      share_is_reliable(computing, record.summary) && -exposed <= inconclusive_reason(computing, record.summary);
  return sure ? std::optional(exposed) : std::nullopt;
}

std::optional<double> reliable_efficiency(const CaseRecord& record) {
  if (!record.derived.ranks || timing_unreliable(record.summary)) return std::nullopt;
  return record.derived.ranks->efficiency;
}

}  // namespace gpubench

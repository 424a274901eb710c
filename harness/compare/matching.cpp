#include "harness/compare/matching.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "harness/report/quantity.h"

namespace gpubench {
namespace {

// Files round FLOP counts to fp64; beyond that two counts of one definition are equal.
bool same_count(double a, double b) { return a == b || std::fabs(a - b) <= 1e-12 * std::fabs(a); }

std::string conflict_of(const MeasuredCase& a, const MeasuredCase& b) {
  // Equal hashes are one definition, whatever was moved: a backend that fuses ops moves fewer bytes for the same work.
  const bool both_told = !a.def_hash.empty() && !b.def_hash.empty();
  if (both_told && a.def_hash == b.def_hash) return "";
  if (!same_count(a.flop, b.flop))
    return fmt::format("{} on one side, {} on the other: another definition", format_quantity(a.flop, "FLOP"),
                       format_quantity(b.flop, "FLOP"));
  if (both_told)
    return fmt::format("def_hash {} on one side, {} on the other: another definition", a.def_hash, b.def_hash);
  if (!same_count(a.bytes, b.bytes))
    return fmt::format("{} on one side, {} on the other: another definition", format_quantity(a.bytes, "B"),
                       format_quantity(b.bytes, "B"));
  if (a.unit != b.unit) return fmt::format("rates in {} on one side, in {} on the other", a.unit, b.unit);
  return "";
}

}  // namespace

const MeasuredCase* CaseOfSide::unpassed() const {
  for (const MeasuredCase* one : cases) {
    if (!one->run) return one;
  }
  return nullptr;
}

double CaseOfSide::median_ns() const {
  double sum = 0.0;
  for (const CaseRun& run : runs) sum += run.log_median;
  return std::exp(sum / static_cast<double>(runs.size()));
}

double CaseOfSide::work_per_s() const {
  double sum = 0.0;
  for (const MeasuredCase* one : cases) {
    if (one->run) sum += std::log(one->work_per_s);
  }
  return std::exp(sum / static_cast<double>(runs.size()));
}

std::vector<MatchedCase> match(std::span<const Invocation> baseline, std::span<const Invocation> candidate) {
  std::vector<MatchedCase> matched;
  std::unordered_map<std::string_view, std::size_t> places;
  const auto add = [&](std::span<const Invocation> side, CaseOfSide MatchedCase::*member) {
    for (const Invocation& invocation : side) {
      for (const MeasuredCase& one : invocation.cases) {
        const auto [place, fresh] = places.try_emplace(one.id, matched.size());
        if (fresh) matched.push_back({one.id, one.suite, one.unit, {}, {}});
        CaseOfSide& of_side = matched[place->second].*member;
        of_side.cases.push_back(&one);
        if (one.run) of_side.runs.push_back(*one.run);
      }
    }
  };
  add(baseline, &MatchedCase::baseline);
  add(candidate, &MatchedCase::candidate);
  return matched;
}

std::string definition_conflict(const MatchedCase& one) {
  const MeasuredCase* first = nullptr;
  for (const CaseOfSide* side : {&one.baseline, &one.candidate}) {
    for (const MeasuredCase* other : side->cases) {
      if (!other->run) continue;  // a case that did not run has no counts
      if (first == nullptr) first = other;
      if (std::string conflict = conflict_of(*first, *other); !conflict.empty()) return conflict;
    }
  }
  return "";
}

}  // namespace gpubench

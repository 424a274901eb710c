#include "harness/report/report_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace gpubench {
namespace {

struct Sums {
  std::vector<PassedOps> all;
  std::map<std::string, std::size_t> places{};
  explicit Sums(std::vector<PassedOps> before) : all(std::move(before)) {
    for (std::size_t i = 0; i < all.size(); ++i) places.try_emplace(all[i].kind, i);
  }
  void add(const OpParity& op) {
    const auto [place, is_new] = places.try_emplace(op.kind, all.size());
    if (is_new) all.emplace_back().kind = op.kind;
    PassedOps& sums = all[place->second];
    if (is_new || op.error_over_bound > sums.error_over_bound) {
      sums.error_over_bound = op.error_over_bound;
      sums.phase = op.phase;
    }
    add_count(sums.ops, 1);
    add_count(sums.judged, op.judged);
    add_count(sums.elements, op.elements);
    add_count(sums.mutations, op.mutations);
  }
};

void sum_up_ops(Parity& parity) {
  // With NaN the largest error would depend on the order of ops, so all ops stay.
  if (std::ranges::any_of(parity.ops, [](const OpParity& op) { return std::isnan(op.error_over_bound); })) return;
  const auto rank = [&parity](const OpParity& op) {
    return std::pair(op.error_over_bound, op.label == parity.worst_op);
  };
  std::map<std::string, std::size_t> largest;
  for (std::size_t i = 0; i < parity.ops.size(); ++i) {
    std::size_t& at = largest.try_emplace(parity.ops[i].phase, i).first->second;
    if (rank(parity.ops[i]) > rank(parity.ops[at])) at = i;
  }
  Sums passed(parity.passed.value_or(std::vector<PassedOps>{}));
  std::vector<OpParity> kept;
  for (std::size_t i = 0; i < parity.ops.size(); ++i) {
    OpParity& op = parity.ops[i];
    if (op.verdict != Verdict::pass || op.rejected || largest.at(op.phase) == i)
      kept.push_back(std::move(op));
    else
      passed.add(op);
  }
  parity.ops = std::move(kept);
  if (!passed.all.empty()) parity.passed = std::move(passed.all);
}

}  // namespace

CaseRecord brief(CaseRecord record) {
  Parity& parity = record.parity;
  std::map<std::string, std::string> implementations = implementations_of(record);
  parity.implementations.reset();
  sum_up_ops(parity);
  for (const auto& [label, implementation] : implementations_of(record)) {
    const auto same = implementations.find(label);
    if (same->second == implementation) implementations.erase(same);
  }
  if (!implementations.empty()) parity.implementations.emplace(implementations.begin(), implementations.end());
  for (OpShare& op : record.derived.breakdown) {
    if (op.share == op.median_ns / record.summary.median_ns) op.share = 0.0;
  }
  return record;
}

std::map<std::string, std::string> implementations_of(const CaseRecord& record) {
  std::map<std::string, std::string> all;
  const auto add = [&all](const std::string& label, const std::string& implementation) {
    if (!implementation.empty()) all[label] = implementation;
  };
  for (const OpShare& op : record.derived.breakdown) add(op.label, op.implementation);
  for (const OpParity& op : record.parity.ops) add(op.label, op.implementation);
  if (!record.parity.implementations) return all;
  for (const auto& [label, implementation] : *record.parity.implementations) add(label, implementation);
  return all;
}

}  // namespace gpubench

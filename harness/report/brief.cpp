#include "harness/report/brief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace gpubench {
namespace {

// Counts of a report that was read may be anything: a sum stays within its type.
template <class T>
void add_count(T& sum, T more) {
  sum = more > std::numeric_limits<T>::max() - sum ? std::numeric_limits<T>::max() : sum + more;
}

void add_passed(std::vector<PassedOps>& all, const OpParity& op) {
  auto sums = std::ranges::find(all, op.kind, &PassedOps::kind);
  if (sums == all.end()) sums = all.insert(sums, {op.kind});
  if (sums->ops == 0 || op.error_over_bound > sums->error_over_bound) {
    sums->error_over_bound = op.error_over_bound;
    sums->phase = op.phase;
  }
  add_count(sums->ops, 1);
  add_count(sums->judged, op.judged);
  add_count(sums->elements, op.elements);
  add_count(sums->mutations, op.mutations);
}

void sum_up_ops(Parity& parity) {
  const auto rank = [&parity](const OpParity& op) {
    const bool nan = std::isnan(op.error_over_bound);
    return std::tuple(nan, nan ? 0.0 : op.error_over_bound, op.label == parity.worst_op);
  };
  std::map<std::string, std::size_t> largest;  // by phase
  for (std::size_t i = 0; i < parity.ops.size(); ++i) {
    std::size_t& at = largest.try_emplace(parity.ops[i].phase, i).first->second;
    if (rank(parity.ops[i]) > rank(parity.ops[at])) at = i;
  }
  std::vector<PassedOps> passed = parity.passed.value_or(std::vector<PassedOps>{});
  std::vector<OpParity> kept;
  for (std::size_t i = 0; i < parity.ops.size(); ++i) {
    OpParity& op = parity.ops[i];
    if (op.verdict != Verdict::pass || op.rejected || largest.at(op.phase) == i)
      kept.push_back(std::move(op));
    else
      add_passed(passed, op);
  }
  parity.ops = std::move(kept);
  if (!passed.empty()) parity.passed = std::move(passed);
}

void merge_plans(std::vector<PlanArithmetic>& plans) {
  std::vector<PlanArithmetic> merged, readings;  // of each of `merged`, without its ops
  for (PlanArithmetic& plan : plans) {
    PlanArithmetic reading = plan;
    reading.label.clear();
    reading.ops = 0;
    const auto same = std::ranges::find(readings, reading);
    if (plan.verdict == Verdict::pass && same != readings.end()) {
      add_count(merged[static_cast<std::size_t>(same - readings.begin())].ops, plan.ops);
    } else {
      merged.push_back(std::move(plan));
      readings.push_back(std::move(reading));
    }
  }
  plans = std::move(merged);
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
  if (parity.arithmetic) merge_plans(*parity.arithmetic);
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

#include "harness/cli/remaining.h"

#include <algorithm>
#include <utility>

namespace gpubench {
namespace {

constexpr double trust = 0.05;         // in the estimate, as a share of the run
constexpr double before_rounds = 0.5;  // of checking; the other half is the recheck

}  // namespace

double total_s(const std::unordered_map<std::string, ExpectedCase>& cases) {
  double sum_s = 0.0;
  for (const auto& [id, one] : cases) sum_s += one.checking_s + one.timing_s;
  return sum_s;
}

Remaining::Remaining(const std::unordered_map<std::string, ExpectedCase>& cases) : expected_s_(total_s(cases)) {
  for (const auto& [id, expected] : cases) cases_[id] = {expected};
}

// Never back: a worker that died begins its case anew.
void Remaining::reach(Followed& one, double done_s) {
  done_s_ += std::max(0.0, done_s - one.done_s);
  one.done_s = std::max(one.done_s, done_s);
}

void Remaining::phase(const std::string& case_id, std::string_view phase) {
  const auto found = cases_.find(case_id);
  if (found == cases_.end()) return;
  Followed& one = found->second;
  const double checked_s = before_rounds * one.expected.checking_s;
  if (phase == "time") {
    // Ops are timed alone after the recheck, which is told as the same phase: at most all rounds are done by it.
    const int done = std::min(one.rounds_begun++, one.expected.rounds);
    reach(one, checked_s + one.expected.timing_s * done / std::max(1, one.expected.rounds));
  } else if (phase == "recheck") {
    reach(one, checked_s + one.expected.timing_s);
  }
}

void Remaining::finished(const std::string& case_id) {
  const auto found = cases_.find(case_id);
  if (found != cases_.end()) reach(found->second, found->second.expected.checking_s + found->second.expected.timing_s);
}

std::optional<double> Remaining::seconds(double elapsed_s) const {
  if (!(expected_s_ > 0.0)) return std::nullopt;
  const double prior_s = trust * expected_s_;
  const double pace = (elapsed_s + prior_s) / (done_s_ + prior_s);
  return (expected_s_ - done_s_) * pace;
}

}  // namespace gpubench

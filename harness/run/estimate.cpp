#include "harness/run/estimate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "harness/core/recipe.h"
#include "harness/core/tuning_cache.h"
#include "harness/measure/protocol.h"
#include "harness/parity/textbook_outputs.h"
#include "harness/run/check.h"

namespace gpubench {
namespace {

// Fitted to the 168 cases of the quick tier on two threads of a Xeon with AVX-512 and AMX (oneDNN 2.6): the total
// within 10%, nearly every case within a factor of two. On two threads of an EPYC (Zen 4) smoke takes 0.75 of the
// estimate, quick 0.85, with AVX2 only 0.9.
constexpr double flop_per_s_of_a_core = 80e9;
constexpr double narrow_flop_per_s_of_a_core = 200e9;  // of 16 and 8 bit
constexpr double bytes_per_s_of_a_core = 7e9;
constexpr double launch_s = 5e-6;
constexpr double rounding_of_batches = 1.4;  // to powers of two: between 1 and 2
constexpr double cache_rotated_bytes = 100e6;
constexpr double rough_half_width = 0.1;  // most cases reach it in the fewest rounds

constexpr double check_s_per_case = 0.015;
constexpr double check_s_per_op = 0.0012;
constexpr double fill_s_per_byte = 2e-9;       // to fill and fingerprint the tensors
constexpr double scan_s_per_byte = 7e-9;       // to read, scan and poison the outputs, in check and in recheck
constexpr double copy_s_per_byte = 0.4e-9;     // to make and compare the cold copies
constexpr double sampled_s_per_flop = 0.5e-9;  // of the textbook
constexpr double whole_s_per_flop = 0.08e-9;   // if all elements are judged: each line is read once for many elements

struct Work {
  double run_s = 0.0;    // of the timed program
  double alone_s = 0.0;  // of its ops one by one
  double output_bytes = 0.0;
  double textbook_flop = 0.0;  // to judge every element once
  int ops = 0;
  std::set<std::string> products{};  // ops for which libraries have several algorithms; equal ones share a choice
};

Work work_of(const PlannedCase& planned, const Protocol& protocol, const Effort& effort, int cores) {
  const bool narrow = bits_of(recipe(planned.c.recipe).tensor) < 32;
  const double flop_per_s = (narrow ? narrow_flop_per_s_of_a_core : flop_per_s_of_a_core) * cores;
  const Program program = planned.workload->build(planned.c);
  Work work;
  for (const OpCall& op : program.ops()) {
    if (op.phase != Phase::timed) continue;
    const Cost cost = cost_of(program, op);
    const double op_s = std::max(cost.flop / flop_per_s, cost.bytes / (bytes_per_s_of_a_core * cores));
    for (const ValueId output : op.outputs) work.output_bytes += static_cast<double>(program.spec(output).bytes());
    work.run_s += op_s + launch_s;
    work.alone_s += op_s + samples_alone(protocol, op_s) * std::max(op_s, rounding_of_batches * protocol.min_sample_s);
    work.textbook_flop += textbook_flop(program, op);
    if (effort.plan_s > 0.0 && cost.flop > cost.bytes) work.products.insert(choice_key(op, specs_of_call(program, op)));
    ++work.ops;
  }
  return work;
}

// As first_estimate_s() in timing.cpp runs.
double first_estimate_s(const Work& work, const Protocol& protocol, CacheMode cache) {
  const double warmed_up_s = std::max(protocol.first_warmup_s, protocol.first_warmup_calls * work.run_s) +
                             (cache == CacheMode::step ? 1 : 3) * work.run_s;
  if (protocol.first_warmup_calls > 1) return warmed_up_s;
  if (work.run_s < protocol.first_warmup_s) return work.run_s + warmed_up_s;
  return samples_for(protocol, 1, work.run_s) == protocol.min_samples ? work.run_s : 2.0 * work.run_s;
}

double timing_s(const Work& work, const Protocol& protocol, CacheMode cache) {
  const bool step = cache == CacheMode::step;  // one run per sample
  const double sample_s = step ? work.run_s : std::max(work.run_s, rounding_of_batches * protocol.min_sample_s);
  const double round_s =
      samples_for(protocol, 1, sample_s) * sample_s + warmup_calls_for(protocol, work.run_s) * work.run_s;
  const double wanted_rounds =
      std::lerp(protocol.min_rounds, protocol.max_rounds, protocol.half_width < rough_half_width ? 0.5 : 0.1);
  const double rounds =
      std::clamp(protocol.budget_s / round_s, static_cast<double>(protocol.min_rounds), wanted_rounds);
  return first_estimate_s(work, protocol, cache) + rounds * round_s +
         (work.ops > 1 ? std::min(work.alone_s, protocol.budget_s + work.run_s) : 0.0);
}

double checking_s(const PlannedCase& planned, const Work& work, const Effort& effort) {
  const auto bytes = static_cast<double>(planned.bytes);
  const double copied =
      planned.c.cache == CacheMode::cold ? std::min(64.0 * bytes, std::max(bytes, cache_rotated_bytes)) : bytes;
  // The textbook judges everything twice, in check and in recheck.
  const bool in_full =
      effort.check == CheckMode::full || (effort.check == CheckMode::own && !planned.c.contender.empty());
  const double textbook_s = effort.check == CheckMode::off ? 0.0
                            : in_full                      ? 2.0 * whole_s_per_flop * work.textbook_flop
                                      : sampled_s_per_flop * std::min(work.textbook_flop, budget_flop(effort.tier));
  return check_s_per_case + check_s_per_op * work.ops + fill_s_per_byte * bytes + scan_s_per_byte * work.output_bytes +
         copy_s_per_byte * copied + textbook_s;
}

}  // namespace

Estimate estimate(const PlannedCase& planned, const Effort& effort, int cores) {
  const Protocol& protocol = protocol_of(effort.preset.value_or(preset_of(effort.tier)));
  const Work work = work_of(planned, protocol, effort, cores);
  const double planning = effort.plan_s * static_cast<double>(work.products.size());
  const double checking = checking_s(planned, work, effort);
  return {planning + checking + timing_s(work, protocol, planned.c.cache), planning, checking, planned.bytes};
}

std::unordered_map<std::string, ExpectedCase> expected_cases(std::span<const PlannedCase> planned, const Effort& effort,
                                                             int cores) {
  const int rounds = protocol_of(effort.preset.value_or(preset_of(effort.tier))).min_rounds;
  std::unordered_map<std::string, ExpectedCase> all;
  for (const PlannedCase& one : planned) {
    const Estimate e = estimate(one, effort, cores);
    all[one.key()] = {e.checking_s, e.seconds - e.planning_s - e.checking_s, rounds, e.planning_s};
  }
  return all;
}

Estimate estimate(std::span<const PlannedCase> planned, const Effort& effort, int cores) {
  Estimate all;
  for (const PlannedCase& one : planned) {
    const Estimate e = estimate(one, effort, cores);
    all.seconds += e.seconds;
    all.planning_s += e.planning_s;
    all.checking_s += e.checking_s;
    all.bytes = std::max(all.bytes, e.bytes);
  }
  return all;
}

namespace {

constexpr double trust = 0.05;         // share of the run that counts as finished as estimated
constexpr double before_rounds = 0.5;  // share of checking before the rounds; the rest is the recheck

}  // namespace

double total_s(const std::unordered_map<std::string, ExpectedCase>& cases) {
  double sum_s = 0.0;
  for (const auto& [id, one] : cases) sum_s += one.seconds();
  return sum_s;
}

Remaining::Remaining(const std::unordered_map<std::string, ExpectedCase>& cases) : expected_s_(total_s(cases)) {
  for (const auto& [id, expected] : cases) cases_[id] = {expected};
}

// Never decreases, although a case starts again if its worker died.
void Remaining::reach(Followed& one, double done_s) {
  done_s_ += std::max(0.0, done_s - one.done_s);
  one.done_s = std::max(one.done_s, done_s);
}

void Remaining::phase(const std::string& key, std::string_view phase) {
  const auto found = cases_.find(key);
  if (found == cases_.end()) return;
  Followed& one = found->second;
  const double checked_s = one.expected.planning_s + before_rounds * one.expected.checking_s;
  if (phase == "check") {
    reach(one, one.expected.planning_s);
  } else if (phase == "time") {
    // Ops are timed alone after the recheck, in a phase of the same name: limited to all rounds.
    const int done = std::min(one.rounds_begun++, one.expected.rounds);
    reach(one, checked_s + one.expected.timing_s * done / std::max(1, one.expected.rounds));
  } else if (phase == "recheck") {
    reach(one, checked_s + one.expected.timing_s);
  }
}

void Remaining::finished(const std::string& key) {
  const auto found = cases_.find(key);
  if (found != cases_.end()) reach(found->second, found->second.expected.seconds());
}

std::optional<double> Remaining::seconds(double elapsed_s) const {
  if (!(expected_s_ > 0.0)) return std::nullopt;
  const double prior_s = trust * expected_s_;
  const double pace = (elapsed_s + prior_s) / (done_s_ + prior_s);
  return (expected_s_ - done_s_) * pace;
}

}  // namespace gpubench

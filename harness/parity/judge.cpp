// The order of the check, for each output: scan every element, choose units, evaluate the textbook on them in chunks
// over the threads, compare, then corrupt copies of the compared numbers.
#include "harness/parity/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/likely_cause.h"
#include "harness/parity/lower_precision.h"
#include "harness/parity/on_threads.h"
#include "harness/parity/projection.h"
#include "harness/parity/sample.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_suspects = 1000;
constexpr std::int64_t chunk_elements = 65536;  // 1 MiB of judged values per thread
constexpr std::int64_t panel_elements = 256;    // copies that the live mutations corrupt
constexpr double min_flop_per_thread = 1e5;     // about the time to start and end a thread
constexpr double max_of_a_few = 16.0;           // with exact sums, judged elements get 1/16 of a budget
constexpr double no_limit = std::numeric_limits<double>::infinity();

std::string place(const TensorSpec& spec, std::int64_t linear) {
  return fmt::format("{}[{}]", spec.name, fmt::join(multi_index(spec.shape, linear), ", "));
}

struct Output {
  int index = 0;
  const TensorView* view = nullptr;
  CheckUnits units;
  Scan scan;
  bool everything = false;            // all units are judged
  std::vector<std::int64_t> sampled;  // judged units, if not all
  Tally tally;
  std::vector<CheckedElement> panel;
  MutationReport mutations;
};

struct ChunkResult {
  Tally tally;
  std::vector<CheckedElement> panel;
};

class Judge {
 public:
  Judge(const Program& program, int op, const OpView& view, const JudgePolicy& policy, std::string_view phase)
      : call_(program.op(op)),
        view_(view),
        policy_(policy),
        definition_(definition(call_.kind)),
        input_specs_(specs_of(view.inputs)),
        output_specs_(specs_of(program, call_.outputs)) {
    if (view.inputs.size() != call_.inputs.size() || view.outputs.size() != call_.outputs.size()) {
      throw ProgramError(fmt::format("op '{}' was given {} inputs and {} outputs to judge, expected {} and {}",
                                     call_.label, view.inputs.size(), view.outputs.size(), call_.inputs.size(),
                                     call_.outputs.size()));
    }
    parity_.label = call_.label;
    parity_.kind = std::string(call_.kind.name);
    parity_.phase = std::string(phase);
    for (const TensorSpec& spec : output_specs_) parity_.elements += spec.shape.elements();
  }

  OpParity run() {
    if (policy_.mode == CheckMode::off) {
      parity_.verdict = Verdict::unverified;
      parity_.reason = "the check is off";
      return parity_;
    }
    for (int i = 0; i < static_cast<int>(output_specs_.size()); ++i) {
      outputs_.push_back(prepare(i));
      if (!policy_.affordable_only || min_work(outputs_.back().units) <= policy_.flop_budget) continue;
      parity_.elements -= output_specs_[static_cast<std::size_t>(i)].shape.elements();
      outputs_.pop_back();
    }
    judge_cheapest_first();
    compare_replicas();
    for (const Output& output : outputs_) collect(output);
    conclude();
    return parity_;
  }

 private:
  Output prepare(int index) const {
    Output output;
    output.index = index;
    output.view = &view_.outputs[static_cast<std::size_t>(index)];
    output.units = definition_.units({call_, input_specs_, output_specs_}, index);
    const std::int64_t elements = output.view->shape().elements();
    if (output.units.count * output.units.elements != elements) {
      throw ProgramError(
          fmt::format("the textbook of '{}' has {} units of {} elements for output '{}', which has {} elements",
                      call_.kind.name, output.units.count, output.units.elements, output.view->spec().name, elements));
    }
    output.scan = scan(*output.view, max_suspects);
    return output;
  }

  // Cheap outputs leave the rest of their share of the budget to expensive ones.
  void judge_cheapest_first() {
    std::vector<Output*> order;
    for (Output& output : outputs_) order.push_back(&output);
    const auto work = [](const Output* o) { return static_cast<double>(o->units.count) * work_of_unit(o->units); };
    std::stable_sort(order.begin(), order.end(), [&](const Output* a, const Output* b) { return work(a) < work(b); });
    double budget = policy_.flop_budget;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double share = budget / static_cast<double>(order.size() - i);
      judge_output(*order[i], share);
      if (!order[i]->panel.empty()) order[i]->mutations = mutate(order[i]->panel, order[i]->view->dtype());
      budget -= std::min(share, work(order[i]));
    }
  }

  // Every rank must compute the same bits: a diverging rank may still be within the bound.
  void compare_replicas() {
    for (const std::vector<int>& group : definition_.identical_outputs(call_)) {
      for (std::size_t i = 1; i < group.size() && divergence_.empty(); ++i) {
        const TensorView& first = view_.outputs[static_cast<std::size_t>(group[0])];
        const TensorView& other = view_.outputs[static_cast<std::size_t>(group[i])];
        const std::int64_t at = first_difference(first, other);
        if (at < 0) continue;
        divergence_ = fmt::format("'{}' and '{}' must hold the same bits and differ, first at {}: {} and {}",
                                  first.spec().name, other.spec().name, place(other.spec(), at), first[at], other[at]);
      }
    }
  }

  static std::int64_t first_difference(const TensorView& a, const TensorView& b) {
    return TensorView::surely_equal(a, b) ? -1 : difference(a, b, 1).first;
  }

  // The op's explanation of the wrong elements of the output with the worst one.
  [[nodiscard]] std::string explanation() const {
    for (const Output& output : outputs_) {
      if (output.tally.wrong.empty() || output.view->spec().name != parity_.worst->tensor) continue;
      const std::string text =
          definition_.explain({call_, view_.inputs, output_specs_}, output.index, output.tally.wrong);
      return text.empty() ? text : "; " + text;
    }
    return {};
  }

  // The arithmetic below the declared one that explains all wrong elements. Empty where none does, or where too few
  // elements are wrong: bf16 stores hide most of the loss of f16 or split sums, but of no product more than three
  // quarters.
  [[nodiscard]] std::string downgrade() const {
    if (policy_.sums.exact) return {};  // its bound would also admit a missing product
    std::string found;
    for (const Output& output : outputs_) {
      const Tally& tally = output.tally;
      if (tally.bad == 0) continue;
      if (4 * tally.bad < tally.judged || !divergence_.empty()) return {};
      const std::string lower =
          lower_precision({call_, view_.inputs, output_specs_, view_.outputs}, output.index, tally.wrong);
      if (lower.empty() || (!found.empty() && found != lower)) return {};
      found = lower;
    }
    return found;
  }

  // Of the output with the most wrong elements. An exception here must not hide the verdict.
  [[nodiscard]] std::string cause() const {
    const Output& output = *std::ranges::max_element(outputs_, {}, [](const Output& o) { return o.tally.bad; });
    if (policy_.cause_flop < 2.0 * output.units.flop_per_unit) return {};
    const bool all = output.everything;
    std::vector<std::int64_t> places = cause_sample(
        output.units, all ? output.units.count : std::ssize(output.sampled),
        [&](std::int64_t i) { return all ? i : output.sampled[static_cast<std::size_t>(i)]; }, output.tally.wrong,
        policy_.cause_flop);
    places.insert(places.end(), output.scan.extremes.begin(), output.scan.extremes.end());
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    std::vector<double> got(places.size());
    output.view->gather(places, 1, got);
    try {
      const std::vector<Expected> right = expected_elements(operands(), output.index, places);
      std::vector<CheckedElement> elements;
      for (std::size_t i = 0; i < places.size(); ++i) elements.push_back({places[i], right[i], got[i]});
      const std::string found = likely_cause(operands(), output.index, elements, policy_.cause_flop);
      return found.empty() ? found : "; looks like: " + found;
    } catch (const std::exception&) {
      return {};
    }
  }

  [[nodiscard]] Operands operands() const {
    return {call_, view_.inputs, output_specs_, view_.outputs, policy_.sums.exact, policy_.sums.sparse};
  }

  [[nodiscard]] UnitChoice choose(const Output& output, double share) const {
    const bool everything = policy_.mode == CheckMode::full || policy_.sums.sparse;
    return everything ? UnitChoice::all(output.units.count) : sample_of(output, share);
  }

  [[nodiscard]] UnitChoice sample_of(const Output& output, double share) const {
    std::vector<std::int64_t> suspects;
    const auto add = [&](std::span<const std::int64_t> elements) {
      for (const std::int64_t linear : elements) suspects.push_back(linear / output.units.elements);
    };
    add(output.scan.suspects);
    if (!view_.suspects.empty()) add(view_.suspects[static_cast<std::size_t>(output.index)]);
    add(output.scan.extremes);
    const std::uint64_t key = hash(parity_.phase, hash(output.view->spec().name, mix(policy_.seed)));
    return choose_units(output.units, share, std::move(suspects), key);
  }

  // A sample, then sums of all elements. Exact sums leave no error unseen, so few elements suffice.
  void judge_output(Output& output, double share) {
    const bool exact = policy_.sums.multiple_of > 0.0;
    judge_more(output, exact ? sample_of(output, share / max_of_a_few) : choose(output, share));
    if (project_output(output, exact && policy_.mode != CheckMode::sample ? no_limit : share)) return;
    if (exact) judge_more(output, choose(output, share));
    const bool bitwise =
        std::ranges::all_of(output.panel, [](const CheckedElement& e) { return e.judged.bound == 0.0; });
    if (bitwise && policy_.mode == CheckMode::bitwise) judge_more(output, UnitChoice::all(output.units.count));
  }

  void judge_more(Output& output, const UnitChoice& choice) const {
    if (output.everything) return;
    const std::vector<std::int64_t> before = std::move(output.sampled);
    output.everything = choice.everything();
    if (before.empty()) {
      if (!output.everything) output.sampled = choice.slice(0, choice.size());
      return judge_units(output, choice);
    }
    output.sampled.clear();
    const std::vector<std::int64_t> chosen = choice.slice(0, choice.size());
    std::vector<std::int64_t> fresh;
    std::set_difference(chosen.begin(), chosen.end(), before.begin(), before.end(), std::back_inserter(fresh));
    std::set_union(chosen.begin(), chosen.end(), before.begin(), before.end(), std::back_inserter(output.sampled));
    judge_units(output, UnitChoice::some(std::move(fresh)));
  }

  // Checks the rest by sums, and judges the elements of sums that are off. False where that was not possible.
  bool project_output(Output& output, double share) {
    if (output.everything || output.units.elements != 1) return false;
    const Parallel parallel = [this](std::int64_t count, double flop, const auto& work) {
      on_threads(threads_for(flop), count, work);
    };
    const std::uint64_t key = hash(output.view->spec().name, hash(parity_.phase, mix(policy_.seed + 1)));
    const auto max_suspects = static_cast<std::int64_t>(policy_.flop_budget / work_of_unit(output.units));
    const std::optional<ProjectionResult> found = project(operands(), *output.view, output.index, output.panel,
                                                          max_suspects, share, key, parallel, policy_.sums.multiple_of);
    if (!found) return false;
    parity_.projected = parity_.projected.value_or(0) + output.view->shape().elements();
    parity_.projected_fault = std::max(parity_.projected_fault.value_or(0.0), found->smallest_fault);
    judge_more(output, UnitChoice::some(found->suspects));
    return true;
  }

  [[nodiscard]] int threads_for(double flop) const {
    return static_cast<int>(
        std::clamp(flop / min_flop_per_thread, 1.0, static_cast<double>(std::max(policy_.threads, 1))));
  }

  void judge_units(Output& output, const UnitChoice& choice) const {
    if (choice.size() == 0) return;
    const double work = static_cast<double>(choice.size()) * work_of_unit(output.units);
    const int threads = threads_for(work);
    const std::int64_t target = 4 * threads;  // chunks, so that threads end together
    const std::int64_t spread = (choice.size() + target - 1) / target;
    const std::int64_t per_chunk =
        std::clamp<std::int64_t>(spread, 1, std::max<std::int64_t>(1, chunk_elements / output.units.elements));
    const std::int64_t chunks = (choice.size() + per_chunk - 1) / per_chunk;
    std::vector<ChunkResult> results(static_cast<std::size_t>(chunks));
    const std::int64_t panel_step = std::max<std::int64_t>(1, choice.size() * output.units.elements / panel_elements);
    on_threads(threads, chunks, [&](std::int64_t chunk) {
      const std::int64_t first = chunk * per_chunk;
      const std::vector<std::int64_t> wanted = choice.slice(first, std::min(per_chunk, choice.size() - first));
      results[static_cast<std::size_t>(chunk)] = judge_chunk(output, wanted, first * output.units.elements, panel_step);
    });
    for (const ChunkResult& result : results) {  // in order: results must not depend on thread timing
      output.tally.add(result.tally);
      output.panel.insert(output.panel.end(), result.panel.begin(), result.panel.end());
    }
    if (output.tally.most_sensitive.linear >= 0) output.panel.push_back(output.tally.most_sensitive);
  }

  // `ordinal`: position of the chunk's first element among all judged ones; every panel_step-th is kept.
  [[nodiscard]] ChunkResult judge_chunk(const Output& output, std::span<const std::int64_t> wanted,
                                        std::int64_t ordinal, std::int64_t panel_step) const {
    const auto per_unit = static_cast<std::size_t>(output.units.elements);
    std::vector<Expected> judged(wanted.size() * per_unit);
    definition_.evaluate(operands(), output.index, wanted, judged);

    ChunkResult result;
    std::vector<std::int64_t> firsts(wanted.begin(), wanted.end());
    for (std::int64_t& first : firsts) first *= output.units.elements;
    std::vector<double> got(judged.size());
    {
      const std::unique_lock<std::mutex> one_at_a_time =
          output.view->is_on_device() ? std::unique_lock(device_) : std::unique_lock<std::mutex>();
      output.view->gather(firsts, output.units.elements, got);
    }
    for (std::size_t first = 0; first < wanted.size();) {
      std::size_t last = first + 1;  // adjacent units are compared together
      while (last < wanted.size() && wanted[last] == wanted[last - 1] + 1) ++last;
      const std::size_t at = first * per_unit;
      const std::size_t count = (last - first) * per_unit;
      compare(firsts[first], std::span<const Expected>(judged).subspan(at, count), output.view->dtype(),
              std::span<const double>(got).subspan(at, count), result.tally);
      first = last;
    }
    for (std::int64_t i = (panel_step - ordinal % panel_step) % panel_step;
         i < static_cast<std::int64_t>(judged.size()); i += panel_step) {
      const auto at = static_cast<std::size_t>(i);
      result.panel.push_back({firsts[at / per_unit] + static_cast<std::int64_t>(at % per_unit), judged[at], got[at]});
    }
    return result;
  }

  void collect(const Output& output) {
    parity_.judged += output.tally.judged;
    parity_.bad += output.tally.bad;
    parity_.mutations += output.mutations.tried;
    parity_.mutations_rejected += output.mutations.rejected;
    const CheckedElement& worst = output.tally.worst;
    if (worst.linear < 0 || (parity_.worst && !(output.tally.error_over_bound > parity_.error_over_bound))) return;
    const TensorSpec& spec = output.view->spec();
    parity_.error_over_bound = output.tally.error_over_bound;
    parity_.worst =
        Worst{spec.name, multi_index(spec.shape, worst.linear), worst.got, worst.judged.value, worst.judged.bound};
  }

  void place_wrong_ones() {
    for (const Output& output : outputs_) {
      const TensorSpec& spec = output.view->spec();
      if (output.tally.wrong.empty() || !parity_.worst || parity_.worst->tensor != spec.name) continue;
      std::vector<std::int64_t> wrong;
      for (const Mismatch& one : output.tally.wrong) wrong.push_back(one.linear);
      parity_.places = wrong_places(spec, wrong);
    }
  }

  [[nodiscard]] static bool all_nan(const Output& output) {
    return std::all_of(output.panel.begin(), output.panel.end(),
                       [](const CheckedElement& e) { return std::isnan(e.judged.value); });
  }

  // Otherwise any wrong NaN would look right. Data of phase "special" contain NaN to test its propagation.
  [[nodiscard]] bool nan_is_expected(const Output& output) const {
    if (parity_.phase == "special") return true;
    return definition_.nan_is_correct({call_, view_.inputs, output_specs_, view_.outputs}, output.index);
  }

  void conclude() {
    place_wrong_ones();
    const auto decide = [this](Verdict verdict, std::string reason) {
      parity_.verdict = verdict;
      parity_.reason = std::move(reason);
    };
    for (const Output& output : outputs_) {
      if (output.scan.unwritten == 0) continue;
      const TensorSpec& spec = output.view->spec();
      return decide(Verdict::fail,
                    fmt::format("unwritten: {} of {} elements of '{}' still hold the poison pattern, first at {}",
                                output.scan.unwritten, spec.shape.elements(), spec.name,
                                place(spec, output.scan.first_unwritten)));
    }
    if (parity_.bad > 0) {
      const Worst& w = *parity_.worst;
      std::string why = explanation();
      const std::string lower = why.empty() ? downgrade() : "";
      if (!lower.empty()) why = fmt::format("; all are right within the bound of {}", lower);
      if (why.empty()) why = cause();
      return decide(
          lower.empty() ? Verdict::fail : Verdict::downgraded,
          fmt::format("{} of {} judged elements outside their bound, worst at {}[{}]: got {}, want {} +- {}{}",
                      parity_.bad, parity_.judged, w.tensor, fmt::join(w.index, ", "), w.got, w.want, w.bound, why));
    }
    if (!divergence_.empty()) return decide(Verdict::fail, divergence_);
    for (const Output& output : outputs_) {
      const std::string& name = output.view->spec().name;
      if (output.tally.judged == 0)
        return decide(Verdict::not_proven, fmt::format("no element of '{}' was compared", name));
      if (output.mutations.tried == 0 || (all_nan(output) && !nan_is_expected(output)))
        return decide(Verdict::not_proven, fmt::format("every reference value of '{}' is NaN", name));
      if (!output.mutations.accepted.empty()) {
        return decide(Verdict::not_proven,
                      fmt::format("the check of '{}' also accepted {}: its bound is too wide to tell", name,
                                  fmt::join(output.mutations.accepted, ", ")));
      }
    }
    if (outputs_.empty()) return decide(Verdict::not_proven, "the op has no outputs");
    decide(Verdict::pass, "");
  }

  const OpCall& call_;
  const OpView& view_;
  const JudgePolicy& policy_;
  const OpDefinition& definition_;
  std::vector<TensorSpec> input_specs_;
  std::vector<TensorSpec> output_specs_;
  std::vector<Output> outputs_;
  std::string divergence_;
  OpParity parity_;
  mutable std::mutex device_;  ///< serializes access to the device
};

}  // namespace

OpParity judge(const Program& program, int op, const OpView& view, const JudgePolicy& policy, std::string_view phase) {
  return Judge(program, op, view, policy, phase).run();
}

}  // namespace gpubench

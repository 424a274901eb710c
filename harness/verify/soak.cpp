#include "harness/verify/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/verify/soaked_case.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_bytes = std::int64_t{8} << 30U;  ///< of all cases, whose results the host keeps

class Soak {
 public:
  Soak(Backend& backend, const RunOptions& options, const SoakEffort& effort, const SoakObserver& observer,
       const StopFlag& stop)
      : faulty_(options.error ? with_error(backend, *options.error) : nullptr),
        backend_(faulty_ ? *faulty_ : backend),
        options_(options),
        effort_(effort),
        observer_(observer),
        stop_(stop) {
    if (options.open_telemetry) telemetry_ = options.open_telemetry(backend.device());
    if (telemetry_ == nullptr) telemetry_ = std::make_unique<NoTelemetry>();
    if (options.open_choices) choices_ = options.open_choices(backend.device());
  }

  SoakResult run(std::span<const PlannedCase> cases) {
    prepare(cases);
    if (observer_.prepared) observer_.prepared(result_);
    judge_all();
    begun_ = Clock::now();
    begin_interval();
    while (continues()) {
      for (const std::unique_ptr<SoakedCase>& subject : subjects_) {
        if (stop_ == 0 && subject->is_judged()) one_launch(*subject);
      }
      if (since(interval_begun_) < effort_.interval_s && continues()) continue;
      end_interval();
      if (is_recheck_due() && continues()) judge_all();
      begin_interval();
    }
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }
  static double since(Clock::time_point then) { return between(then, Clock::now()); }

  [[nodiscard]] bool continues() const {
    return stop_ == 0 && since(begun_) < effort_.seconds &&
           std::ranges::any_of(subjects_, [](const auto& subject) { return subject->is_judged(); });
  }

  [[nodiscard]] bool is_recheck_due() const {
    const double launches_s = judging_s_ / effort_.judging_share - judging_s_;
    return since(judged_) >= std::max(effort_.recheck_s, launches_s);
  }

  void report_step(std::string_view what) const {
    if (observer_.now) observer_.now(what);
  }

  void prepare(std::span<const PlannedCase> cases) {
    const std::int64_t limit = std::min(backend_.device().available_bytes / 2, max_bytes);
    std::int64_t bytes = 0;
    for (const PlannedCase& planned : cases) {
      const auto leave_out = [&](std::string_view why) {
        result_.left_out.push_back(fmt::format("{}: {}", planned.id(), why));
      };
      if (stop_ != 0) return;
      if (planned.c.ranks > 1) {
        leave_out("it runs on several ranks");
      } else if (bytes + 2 * planned.bytes > limit) {  // with the kept state
        leave_out("no memory left after the other cases");
      } else {
        try {
          report_step("the preparation of " + planned.id());
          subjects_.push_back(std::make_unique<SoakedCase>(backend_, planned, options_, choices_.get()));
          if (choices_) choices_->keep(subjects_.back()->timed_choices());
          result_.cases.push_back(planned.id());
          bytes += 2 * planned.bytes;
        } catch (const Unsupported& e) {
          leave_out(e.what());
        } catch (const DoesNotFit& e) {
          leave_out(e.what());
        }
      }
    }
  }

  void judge_all() {
    const Clock::time_point start = Clock::now();
    const std::uint64_t seed = hash_at(mix(options_.seed), static_cast<std::uint64_t>(result_.rechecks));
    for (const std::unique_ptr<SoakedCase>& subject : subjects_) {
      if (stop_ != 0) return;
      report_step(subject->judging());
      std::string why = subject->judge(options_, seed);
      if (why.empty()) {
        if (observer_.judged) observer_.judged({result_.rechecks, subject->id(), subject->judged()});
        continue;
      }
      if (observer_.wrong) observer_.wrong(why);
      result_.add_wrong(std::move(why));
    }
    ++result_.rechecks;
    judged_ = Clock::now();
    judging_s_ = between(start, judged_);
    result_.judging_s += judging_s_;
    if (observer_.rechecked) observer_.rechecked(judging_s_);
  }

  void one_launch(SoakedCase& subject) {
    report_step(subject.launching());
    const Clock::time_point start = Clock::now();
    subject.launch();
    const Clock::time_point done = Clock::now();
    const bool right = subject.is_right();
    const Clock::time_point compared = Clock::now();
    if (!right) diverged(subject);
    const Clock::time_point settled = Clock::now();
    subject.clear();  // for the next launch, while the caches hold it
    now_.device_s += between(start, done);
    now_.comparing_s += between(done, compared);
    now_.clearing_s += since(settled);
    ++now_.launches;
    now_.ops += subject.ops();
    now_.flop += subject.flop();
  }

  void diverged(SoakedCase& subject) {
    Divergence divergence{since(begun_), result_.rechecks - 1, subject.id(), "", subject.left()};
    divergence.telemetry = telemetry_->end_round();
    divergence.errors_before = errors_;
    divergence.errors_now = telemetry_->memory_errors();
    divergence.text = subject.first_difference();
    telemetry_->begin_round();
    if (observer_.divergence) observer_.divergence(divergence);
    result_.add(std::move(divergence));
  }

  void begin_interval() {
    now_ = {};
    interval_begun_ = Clock::now();
    errors_ = telemetry_->memory_errors();
    telemetry_->begin_round();
  }

  void end_interval() {
    now_.at_s = since(begun_);
    now_.seconds = since(interval_begun_);
    now_.telemetry = telemetry_->end_round();
    if (observer_.interval) observer_.interval(now_);
    result_.add(now_);
  }

  std::unique_ptr<Backend> faulty_;
  Backend& backend_;
  const RunOptions& options_;
  const SoakEffort& effort_;
  const SoakObserver& observer_;
  const StopFlag& stop_;
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<TuningCache> choices_;
  std::vector<std::unique_ptr<SoakedCase>> subjects_;
  SoakInterval now_;
  MemoryErrors errors_;  ///< at the start of the interval
  Clock::time_point begun_, interval_begun_, judged_;
  double judging_s_ = 0.0;  ///< of the last judgement
  SoakResult result_;
};

}  // namespace

SoakResult soak(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                const SoakEffort& effort, const SoakObserver& observer, const StopFlag& stop) {
  return Soak(backend, options, effort, observer, stop).run(cases);
}

namespace {

constexpr double confidence = 0.95;

double rate_of(std::span<const SoakInterval> intervals) {
  double launches = 0.0, seconds = 0.0;
  for (const SoakInterval& interval : intervals) {
    launches += static_cast<double>(interval.launches);
    seconds += interval.device_s;
  }
  return seconds > 0.0 ? launches / seconds : 0.0;
}

}  // namespace

// (1 - rate)^trials = 1 - confidence.
double excluded_rate(std::int64_t trials) {
  return trials > 0 ? -std::expm1(std::log1p(-confidence) / static_cast<double>(trials)) : 1.0;
}

void SoakResult::add(SoakInterval interval) {
  seconds += interval.seconds;
  device_s += interval.device_s;
  clearing_s += interval.clearing_s;
  comparing_s += interval.comparing_s;
  launches += interval.launches;
  ops += interval.ops;
  flop += interval.flop;
  intervals.push_back(std::move(interval));
}

void SoakResult::add(Divergence divergence) {
  ++diverged;
  if (divergences.size() < max_soak_findings) divergences.push_back(std::move(divergence));
}

void SoakResult::add_wrong(std::string what) {
  ++rejected;
  if (wrong.size() < max_soak_findings) wrong.push_back(std::move(what));
}

double SoakResult::burst_rate() const { return intervals.empty() ? 0.0 : rate_of(std::span(intervals).first(1)); }

double SoakResult::sustained_rate() const { return rate_of(std::span(intervals).subspan(intervals.size() / 2)); }

}  // namespace gpubench

#include "harness/run/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/compare.h"
#include "harness/parity/wrong_places.h"
#include "harness/run/check.h"
#include "harness/run/prepared_case.h"

namespace gpubench {
namespace {

constexpr double confidence = 0.95;
constexpr std::int64_t most_bytes = std::int64_t{8} << 30U;  ///< of all cases: the host keeps what they should leave
constexpr std::size_t most_kept = 100;

class SoakedCase {
 public:
  SoakedCase(Backend& backend, const PlannedCase& planned, std::uint64_t seed)
      : planned_(planned),
        arena_(backend),
        prepared_(backend, arena_, planned, seed, backend.device().available_bytes, PlanRequest{{}, nullptr, true}),
        watched_(prepared_.produced()) {
    watched_.insert(watched_.end(), prepared_.state().begin(), prepared_.state().end());
  }

  [[nodiscard]] std::string id() const { return planned_.id(); }
  [[nodiscard]] double flop() const { return planned_.cost.flop; }
  [[nodiscard]] std::int64_t ops() const { return static_cast<std::int64_t>(prepared_.ops(Phase::timed).size()); }
  [[nodiscard]] bool is_judged() const { return is_judged_; }

  /// Judges every op on other data, alone and in the launch, and keeps what the launch has left. Why it was rejected;
  /// empty where it was not.
  std::string judge(RunOptions options, std::uint64_t seed) {
    options.seed = seed;
    prepared_.refill(seed);
    CaseRecord record = open_record(planned_, options);
    CaseCheck check(prepared_, options, record);
    check.alone();
    prepared_.make_copies(0);  // none beside the first
    if (record.verdict == Verdict::pass) check.replay();
    is_judged_ = record.verdict == Verdict::pass;
    if (!is_judged_) return fmt::format("{}: {}", id(), record.reason);
    right_.clear();
    for (const StorageId storage : watched_) right_[storage.index] = prepared_.memory(0).block(storage).copy();
    prints_ = fingerprints_of(prepared_, 0, watched_);
    return {};
  }

  void run() {
    prepared_.reset(0);
    prepared_.begin_storages(0, 0, static_cast<int>(prepared_.program().ops().size()));
    prepared_.backend().run(prepared_.timed(0));
  }

  /// What the last launch left otherwise than it was judged, and what the next one does; empty where nothing differs.
  std::string divergence() {
    const Fingerprints left = fingerprints_of(prepared_, 0, watched_);
    if (left == prints_) return {};
    std::string found = first_wrong();
    run();
    return found + (fingerprints_of(prepared_, 0, watched_) == prints_ ? "; the next launch is right"
                                                                       : "; the next launch is wrong too");
  }

 private:
  // The first op, in the order in which they run, of which an output that is left differs.
  std::string first_wrong() {
    StorageReader reader(prepared_);
    const Program& program = prepared_.program();
    for (const int op : prepared_.ops(Phase::timed)) {
      for (const ValueId id : program.op(op).outputs) {
        const Value& value = program.value(id);
        const auto right = right_.find(value.storage.index);
        if (right == right_.end()) continue;
        const TensorView now(value.spec, reader[value.storage] + value.offset_bytes);
        const TensorView then(value.spec, right->second.bytes.data() + value.offset_bytes);
        const Difference found = difference(now, then, 1);
        if (found.elements == 0) continue;
        return fmt::format("op '{}' ({}, by {}): {} of {} elements of '{}' differ, the first at [{}]: {} for {}",
                           program.op(op).label, program.op(op).kind.name, prepared_.implementation(op), found.elements,
                           value.spec.shape.elements(), value.spec.name,
                           fmt::join(multi_index(value.spec.shape, found.first), ", "), now[found.first],
                           then[found.first]);
      }
    }
    return "bytes between the elements of a tensor differ";
  }

  const PlannedCase& planned_;
  Arena arena_;
  PreparedCase prepared_;
  std::vector<StorageId> watched_;
  Fingerprints prints_;
  StorageContents right_;
  bool is_judged_ = false;
};

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
  }

  SoakResult run(std::span<const PlannedCase> cases) {
    prepare(cases);
    begun_ = Clock::now();
    judge_all();
    begin_interval();
    while (goes_on()) {
      for (const std::unique_ptr<SoakedCase>& subject : subjects_) {
        if (stop_ == 0 && subject->is_judged()) one_launch(*subject);
      }
      if (since(interval_begun_) < effort_.interval_s && goes_on()) continue;
      end_interval();
      if (since(judged_) >= effort_.recheck_s && goes_on()) judge_all();
      begin_interval();
    }
    rates();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

  [[nodiscard]] bool goes_on() const {
    return stop_ == 0 && since(begun_) < effort_.seconds &&
           std::ranges::any_of(subjects_, [](const auto& subject) { return subject->is_judged(); });
  }

  void prepare(std::span<const PlannedCase> cases) {
    const std::int64_t limit = std::min(backend_.device().available_bytes / 2, most_bytes);
    std::int64_t bytes = 0;
    for (const PlannedCase& planned : cases) {
      const auto leave_out = [&](std::string_view why) {
        result_.left_out.push_back(fmt::format("{}: {}", planned.id(), why));
      };
      if (stop_ != 0) return;
      if (planned.c.ranks > 1) {
        leave_out("it runs on several ranks");
      } else if (bytes + 2 * planned.bytes > limit) {  // with the kept state
        leave_out("no room beside the others");
      } else {
        try {
          subjects_.push_back(std::make_unique<SoakedCase>(backend_, planned, options_.seed));
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
    const std::uint64_t seed = hash_at(mix(options_.seed), static_cast<std::uint64_t>(result_.rechecks));
    for (const std::unique_ptr<SoakedCase>& subject : subjects_) {
      if (stop_ != 0) return;
      std::string why = subject->judge(options_, seed);
      if (why.empty()) continue;
      if (observer_.wrong) observer_.wrong(why);
      if (result_.wrong.size() < most_kept) result_.wrong.push_back(std::move(why));
    }
    ++result_.rechecks;
    judged_ = Clock::now();
  }

  void one_launch(SoakedCase& subject) {
    const Clock::time_point start = Clock::now();
    subject.run();
    now_.device_s += since(start);
    ++now_.launches;
    now_.ops += subject.ops();
    now_.flop += subject.flop();
    std::string text = subject.divergence();
    if (text.empty()) return;
    Divergence divergence{since(begun_), subject.id(), std::move(text), telemetry_->end_round()};
    telemetry_->begin_round();
    if (observer_.divergence) observer_.divergence(divergence);
    if (++result_.diverged <= static_cast<std::int64_t>(most_kept))
      result_.divergences.push_back(std::move(divergence));
  }

  void begin_interval() {
    now_ = {};
    interval_begun_ = Clock::now();
    telemetry_->begin_round();
  }

  void end_interval() {
    now_.at_s = since(begun_);
    now_.seconds = since(interval_begun_);
    now_.telemetry = telemetry_->end_round();
    intervals_.push_back(now_);
    if (observer_.interval) observer_.interval(now_);
  }

  void rates() {
    if (intervals_.empty()) return;
    for (const SoakInterval& interval : intervals_) {
      result_.seconds += interval.seconds;
      result_.device_s += interval.device_s;
      result_.launches += interval.launches;
      result_.ops += interval.ops;
      result_.flop += interval.flop;
    }
    const auto rate = [](std::span<const SoakInterval> intervals) {
      double launches = 0.0, seconds = 0.0;
      for (const SoakInterval& interval : intervals) {
        launches += static_cast<double>(interval.launches);
        seconds += interval.device_s;
      }
      return seconds > 0.0 ? launches / seconds : 0.0;
    };
    result_.burst_rate = rate(std::span(intervals_).first(1));
    result_.sustained_rate = rate(std::span(intervals_).subspan(intervals_.size() / 2));
  }

  std::unique_ptr<Backend> faulty_;
  Backend& backend_;
  const RunOptions& options_;
  const SoakEffort& effort_;
  const SoakObserver& observer_;
  const StopFlag& stop_;
  std::unique_ptr<Telemetry> telemetry_;
  std::vector<std::unique_ptr<SoakedCase>> subjects_;
  std::vector<SoakInterval> intervals_;
  SoakInterval now_;
  Clock::time_point begun_, interval_begun_, judged_;
  SoakResult result_;
};

}  // namespace

// (1 - rate)^trials = 1 - confidence.
double excluded_rate(std::int64_t trials) {
  return trials > 0 ? -std::expm1(std::log1p(-confidence) / static_cast<double>(trials)) : 1.0;
}

SoakResult soak(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                const SoakEffort& effort, const SoakObserver& observer, const StopFlag& stop) {
  return Soak(backend, options, effort, observer, stop).run(cases);
}

}  // namespace gpubench

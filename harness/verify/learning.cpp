#include "harness/verify/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>

#include "harness/core/error.h"
#include "harness/run/check.h"
#include "harness/run/prepared_case.h"

namespace gpubench {
namespace {

constexpr int band_members = 3;
/// Least relative decrease of the mean loss from the first to the last turn of the same batches. Without learning only
/// the last bits would differ.
constexpr double min_fall = 0.05;

class DeviceTrainee final : public Trainee {
 public:
  DeviceTrainee(Backend& backend, const PlannedCase& planned, const RunOptions& options)
      : faulty_(options.error ? with_error(backend, *options.error) : nullptr),
        arena_(*(faulty_ ? faulty_.get() : &backend)),
        prepared_(*(faulty_ ? faulty_.get() : &backend), arena_, planned, options.seed,
                  backend.device().available_bytes,
                  PlanRequest{.deterministic = options.deterministic, .alive = options.alive}) {
    prepared_.set_up_to_record();
    launch_ = prepared_.segment(0, ops());
  }

  [[nodiscard]] const Program& program() const override { return prepared_.program(); }

  void begin(const SourceValues& sources) override {
    give(sources);
    prepared_.set_up();
    prepared_.reset(0);
  }
  void go_on(const SourceValues& data) override {
    give(data);
    prepared_.keep_state();
    prepared_.reset(0);
  }
  void step() override {
    prepared_.begin_storages(0, 0, ops());
    prepared_.backend().run(launch_);
    left_.emplace(prepared_);
  }
  [[nodiscard]] std::optional<TensorView> left(ValueId id) override {
    const Value& value = program().value(id);
    if (!prepared_.memory_plan().keeps_memory(value.storage)) return std::nullopt;
    return TensorView(value.spec, (*left_)[value.storage] + value.offset_bytes);
  }

 private:
  [[nodiscard]] int ops() const { return static_cast<int>(prepared_.program().ops().size()); }
  void give(const SourceValues& values) {
    left_.reset();
    for (const auto& [id, tensor] : values) prepared_.give(id, tensor);
  }

  std::unique_ptr<Backend> faulty_;
  Arena arena_;
  PreparedCase prepared_;
  Launch launch_;
  std::optional<StorageReader> left_;
};

Program declared_program(const PlannedCase& planned, std::string recipe) {
  Case c = planned.c;
  c.recipe = std::move(recipe);
  return planned.workload->build(c);
}

double mean_of_turn(std::span<const double> losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}
double first_turn(std::span<const double> losses) {
  return mean_of_turn(losses.first(std::min<std::size_t>(training_batches, losses.size())));
}
double last_turn(std::span<const double> losses) {
  return mean_of_turn(losses.last(std::min<std::size_t>(training_batches, losses.size())));
}
bool fell(std::span<const double> losses) { return last_turn(losses) <= (1.0 - min_fall) * first_turn(losses); }

/// The common part of the cases' ids: without precision, modes of only some cases, and ranks.
std::string model_of(std::span<const PlannedCase> cases) {
  const Case& c = cases.front().c;
  std::string name = fmt::format("{}/{}/{}", c.suite, c.workload, to_string(c.dims));
  for (const std::string& mode : c.modes) {
    if (std::ranges::all_of(cases, [&](const PlannedCase& one) { return one.c.has_mode(mode); })) name += "/" + mode;
  }
  return name;
}

class Lesson {
 public:
  Lesson(Backend& backend, const PlannedCase& planned, const RunOptions& options, const LearningEffort& effort)
      : effort_(effort), declared_(declared_program(planned, planned.c.recipe)) {
    result_.id = planned.id();
    result_.recipe = planned.c.recipe;
    try {
      trainee_ = std::make_unique<DeviceTrainee>(backend, planned, options);
    } catch (const Unsupported& e) {
      result_.lacking = e.what();
      trainee_ = std::make_unique<TextbookTrainee>(declared_, band_members);
    }
    if (!effort.broken) return;
    for (const BrokenRecipe& broken : broken_recipes()) {
      if (broken.recipe != planned.c.recipe || !broken.applies(declared_)) continue;
      recipes_.push_back(&broken);
      broken_.push_back(std::make_unique<BrokenTrainee>(declared_, broken, band_members));
      broken_results_.push_back({std::string(broken.name), std::string(broken.what), std::string(broken.recipe)});
    }
  }

  [[nodiscard]] const std::string& id() const { return result_.id; }

  void judge(const ReferenceTraining& reference, int step) {
    const std::vector<Judged> own{{trainee_.get(), {}}};
    std::vector<Judged> declared;  // trainees of the declared program, which share its correct runs
    if (!result_.lacking.empty()) declared = own;
    for (std::size_t i = 0; i < broken_.size(); ++i) {
      const auto compares = recipes_[i]->compares;
      declared.push_back({broken_[i].get(), compares == nullptr ? ShownBy() : compares});
    }
    std::vector<StepParity> judged;
    if (result_.lacking.empty()) judged = judge_step(trainee_->program(), reference, step, own);
    if (!declared.empty())
      std::ranges::move(judge_step(declared_, reference, step, declared), std::back_inserter(judged));
    result_.judged.push_back(std::move(judged.front()));
    for (std::size_t i = 0; i < broken_.size(); ++i) broken_results_[i].judged.push_back(std::move(judged[i + 1]));
  }

  /// Free training, concurrently with the band and the broken recipes.
  void train(const ReferenceTraining& reference) {
    using Losses = std::vector<double>;
    const auto beside = [&](Trainee& trainee) {
      return std::async(std::launch::async, free_losses, std::ref(trainee), std::cref(reference), effort_.steps,
                        effort_.alive);
    };
    std::vector<std::unique_ptr<TextbookTrainee>> members;
    std::vector<std::future<Losses>> band, broken;
    for (int i = 0; i < band_members; ++i) {
      members.push_back(std::make_unique<TextbookTrainee>(declared_, i));
      band.push_back(beside(*members.back()));
    }
    for (const auto& one : broken_) broken.push_back(beside(*one));
    result_.losses = free_losses(*trainee_, reference, effort_.steps, effort_.alive);
    result_.low = result_.high = band.front().get();
    for (auto member = band.begin() + 1; member != band.end(); ++member) {
      const Losses losses = member->get();
      for (std::size_t i = 0; i < losses.size(); ++i) {
        result_.low[i] = std::min(result_.low[i], losses[i]);
        result_.high[i] = std::max(result_.high[i], losses[i]);
      }
    }
    for (std::size_t i = 0; i < broken.size(); ++i) broken_results_[i].losses = broken[i].get();
  }

  RecipeLearning take(const ReferenceTraining& reference) {
    decide(reference.losses());
    return std::move(result_);
  }
  std::vector<BrokenLearning> take_broken() {
    for (std::size_t i = 0; i < broken_results_.size(); ++i) see(*recipes_[i], broken_results_[i]);
    return std::move(broken_results_);
  }

 private:
  void decide(std::span<const double> exact) {
    // A rejected TextbookTrainee shows a fault of the rule, not of the device.
    const Verdict wrong = result_.lacking.empty() ? Verdict::fail : Verdict::not_proven;
    const auto bad = std::ranges::find_if(result_.judged, [](const StepParity& step) { return !step.passed(); });
    const auto is_finite = [](double loss) { return std::isfinite(loss); };
    if (bad != result_.judged.end()) {
      const EndToEndResult& worst = bad->worst_tensor;
      result_.verdict = wrong;
      result_.reason =
          bad->tensors == 0
              ? fmt::format("step {}: no tensor remained to compare", bad->step)
              : fmt::format(
                    "step {}: '{}' is off by {:.2e} in the 2-norm, {:.2e} is allowed; {} of {} tensors rejected",
                    bad->step, worst.tensor, worst.error, worst.allowed, bad->rejected.size(), bad->tensors);
    } else if (!std::ranges::all_of(result_.losses, is_finite)) {
      const auto first = std::ranges::find_if_not(result_.losses, is_finite) - result_.losses.begin();
      result_.verdict = wrong;
      result_.reason = fmt::format("the loss of step {} is not finite", first + 1);
    } else if (!std::ranges::all_of(exact, is_finite) || !fell(exact)) {
      result_.reason =
          fmt::format("the fp64 loss went from {:.4g} to {:.4g}: a decrease of less than 5% shows no learning",
                      first_turn(exact), last_turn(exact));
    } else if (!fell(result_.losses)) {
      result_.verdict = wrong;
      result_.reason = fmt::format("the loss went from {:.4g} to {:.4g}, that of fp64 to {:.4g}",
                                   first_turn(result_.losses), last_turn(result_.losses), last_turn(exact));
    } else {
      result_.verdict = result_.judged.empty() ? Verdict::not_proven : Verdict::pass;
    }
  }

  static void see(const BrokenRecipe& recipe, BrokenLearning& broken) {
    for (const StepParity& step : broken.judged) {
      for (const EndToEndResult& result : step.rejected) {
        if (!must_show(recipe, result)) continue;
        if (broken.seen_in_step == 0 || error_over_allowed(result) > error_over_allowed(broken.seen_in))
          broken.seen_in = result;
        if (broken.seen_in_step == 0) broken.seen_in_step = step.step;
      }
    }
  }

  const LearningEffort& effort_;
  Program declared_;
  RecipeLearning result_;
  std::unique_ptr<Trainee> trainee_;
  std::vector<const BrokenRecipe*> recipes_;
  std::vector<std::unique_ptr<BrokenTrainee>> broken_;
  std::vector<BrokenLearning> broken_results_;
};

}  // namespace

Verdict ModelLearning::verdict() const {
  Verdict worst = recipes.empty() ? Verdict::not_proven : Verdict::pass;
  for (const RecipeLearning& one : recipes) worst = worse(worst, one.verdict);
  for (const BrokenLearning& one : broken) {
    if (one.seen_in_step == 0) worst = worse(worst, Verdict::not_proven);
  }
  return worst;
}

std::string not_judged_reason(const Program& step) {
  constexpr double max_flop = 4e9;
  constexpr std::int64_t min_rows = 8;
  if (const double flop = textbook_flop(step); !(flop <= max_flop))
    return fmt::format("too large for the textbook: {:.1e} operations a step, {:.0e} at most", flop, max_flop);
  for (const OpCall& call : step.ops()) {
    if (!declares(call.kind.outputs, "loss")) continue;
    if (const std::int64_t rows = step.spec(call.input("logits")).shape[0]; rows < min_rows)
      return fmt::format("a batch of {} rows is too small, {} at least: --batch", rows, min_rows);
  }
  return {};
}

ModelLearning learn(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    const LearningEffort& effort, const std::function<void(const std::string&)>& progress,
                    const StopFlag& stop) {
  ModelLearning model{model_of(cases)};
  progress(fmt::format("{} in fp64", model.model));
  const ReferenceTraining reference(declared_program(cases.front(), "f32"), options.seed, training_batches,
                                    effort.steps, effort.judged_steps, effort.alive);
  model.exact_losses = reference.losses();
  model.exact_first = first_turn(reference.losses());
  model.exact_last = last_turn(reference.losses());
  for (const PlannedCase& planned : cases) {
    try {
      progress(fmt::format("{}: preparing", planned.id()));
      Lesson lesson(backend, planned, options, effort);
      for (int step = 0; step < reference.kept() && stop == 0; ++step) {
        progress(fmt::format("{}: step {} of {}", lesson.id(), step + 1, reference.kept()));
        lesson.judge(reference, step);
      }
      if (stop != 0) break;
      progress(fmt::format("{}: {} steps by itself", lesson.id(), effort.steps));
      lesson.train(reference);
      model.recipes.push_back(lesson.take(reference));
      std::ranges::move(lesson.take_broken(), std::back_inserter(model.broken));
    } catch (const DoesNotFit& e) {
      model.recipes.push_back(
          {.id = planned.id(), .recipe = planned.c.recipe, .verdict = Verdict::skipped, .reason = e.what()});
    } catch (const BackendError& e) {
      model.recipes.push_back(
          {.id = planned.id(), .recipe = planned.c.recipe, .verdict = Verdict::error, .reason = e.what()});
    }
    effort.learned(model);
  }
  return model;
}

}  // namespace gpubench

// Training on a device in each recipe: single steps judged against fp64 (training.h), whole runs compared with those of
// fp64, and broken recipes, which the single steps must reject.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/run/run.h"
#include "harness/verify/training.h"

namespace gpubench {

// Faulty recipes that occurred in practice. Judging single steps must reject them, although their loss may fall. Each
// is a TextbookTrainee with one fault in an attribute, a source, or the result of an op.

struct BrokenRecipe {
  std::string_view name;      ///< "no loss scaling"
  std::string_view what;      ///< the fault, in half a sentence
  std::string_view recipe;    ///< "f16"
  std::vector<Role> seen_in;  ///< one tensor of these roles must be rejected; Role::scalar: the gradients' norm
  /// Whether the fault is possible in the program.
  bool (*applies)(const Program& program);
  void (*edit)(OpCall& call) = nullptr;
  void (*give)(const Program& program, SourceValues& sources) = nullptr;
  void (*after)(const Program& program, int op, TextbookMachine& machine) = nullptr;
  /// Selects values with the same meaning in the correct and the broken recipe; null: all.
  bool (*compares)(const Program& program, ValueId id) = nullptr;
};

/// In the order of output.
[[nodiscard]] std::span<const BrokenRecipe> broken_recipes();

class BrokenTrainee final : public TextbookTrainee {
 public:
  /// `program`: as declared; `broken` must apply to it and outlive this.
  BrokenTrainee(const Program& program, const BrokenRecipe& broken, int number);
  void go_on(const SourceValues& data) override;

 private:
  void after(int op) override;
  const BrokenRecipe& broken_;
};

/// Whether `rejected` has one of the roles BrokenRecipe::seen_in.
[[nodiscard]] bool must_show(const BrokenRecipe& broken, const EndToEndResult& rejected);

/// Why a training step is left out, or empty.
///  - Too large: more than 4e9 fp64 operations, about 1 s of the textbook, which runs each step of each recipe about
///    twenty times.
///  - Fewer than eight rows (images, tokens) in a batch: a single different rounding then exceeds the differences of
///    correct runs (in bf16 with two images, 1 step in 100).
[[nodiscard]] std::string not_judged_reason(const Program& step);
/// Batches that repeat in turn. Learning shows after two turns at the earliest.
inline constexpr int training_batches = 4;

struct RecipeLearning {
  std::string id;         ///< of the case
  std::string recipe;     ///< "bf16"
  std::string lacking{};  ///< the device's reason for not running it, then a TextbookTrainee does; empty: the device
                          ///< runs it
  std::vector<StepParity> judged{};
  std::vector<double> losses{};       ///< of free training
  std::vector<double> low{}, high{};  ///< of three trainings with random errors within the bound of every op
  Verdict verdict = Verdict::not_proven;
  std::string reason{};  ///< of verdicts other than `pass`
};

struct BrokenLearning {
  std::string name, what, recipe;
  std::vector<StepParity> judged{};
  std::vector<double> losses{};
  int seen_in_step = 0;      ///< the first step that rejected it in a tensor of must_show(); 0: none
  EndToEndResult seen_in{};  ///< the result with the largest error_over_allowed() of these rejections
};

struct ModelLearning {
  std::string model;  ///< id of the cases without precision
  std::vector<double> exact_losses{};
  double exact_first = 0.0, exact_last = 0.0;  ///< mean fp64 losses of the first and the last turn of the batches
  std::vector<RecipeLearning> recipes{};
  std::vector<BrokenLearning> broken{};

  /// The worst of all recipes; not_proven if a broken recipe was not rejected.
  [[nodiscard]] Verdict verdict() const;
};

struct LearningEffort {
  int steps = 32;         ///< of free training
  int judged_steps = 10;  ///< single steps, from the first
  bool broken = true;     ///< tries broken recipes
  /// Called with the results of the model so far after each recipe.
  std::function<void(const ModelLearning&)> learned = [](const ModelLearning&) {};
  std::function<void()> alive = [] {};  ///< called before each step, by any thread
};

/// Trains one model in several recipes. `cases` may differ only in precision; their programs must be training steps
/// (is_training_step()). `options`: seed and injected error. `progress` gets the current activity. Ends early, with the
/// results so far, when `stop` is raised.
[[nodiscard]] ModelLearning learn(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                                  const LearningEffort& effort, const std::function<void(const std::string&)>& progress,
                                  const StopFlag& stop);

}  // namespace gpubench

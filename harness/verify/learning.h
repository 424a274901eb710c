// Whether training really learns on a device, in each recipe: single steps judged against fp64 from its state, whole
// runs beside those of fp64, and recipes that are broken on purpose, which the single steps must tell apart.
// harness/verify/training.h has the rule.
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

// Recipes of training that are broken on purpose, as real ones have been: what judging each step must tell from the
// recipe as declared, although the loss may fall as if nothing were wrong. Each is the textbook in the recipe's types
// (TextbookTrainee) with one fault: an attribute, a source, or what an op left.

struct BrokenRecipe {
  std::string_view name;      ///< "no loss scaling"
  std::string_view what;      ///< what is wrong, in half a sentence
  std::string_view recipe;    ///< in which it is shown: "f16"
  std::vector<Role> seen_in;  ///< of the tensors among which one must be rejected; Role::scalar: the gradients' norm
  /// Whether a program has what is to be broken.
  bool (*applies)(const Program& program);
  void (*edit)(OpCall& call) = nullptr;
  void (*give)(const Program& program, SourceValues& sources) = nullptr;
  void (*after)(const Program& program, int op, TextbookMachine& machine) = nullptr;
  /// Of the values that show training, those that mean the same in both; null: all.
  bool (*compares)(const Program& program, ValueId id) = nullptr;
};

/// In the order in which they are shown.
[[nodiscard]] std::span<const BrokenRecipe> broken_recipes();

/// Somebody whose recipe is broken.
class BrokenTrainee final : public TextbookTrainee {
 public:
  /// `program`: as declared; `broken` must apply to it and outlive this.
  BrokenTrainee(const Program& program, const BrokenRecipe& broken, int number);
  void go_on(const SourceValues& data) override;

 private:
  void after(int op) override;
  const BrokenRecipe& broken_;
};

/// Whether a tensor that was rejected is one of those in which the fault must be seen.
[[nodiscard]] bool must_show(const BrokenRecipe& broken, const EndToEndResult& rejected);

// Learning.

/// Why a training step takes no part; empty where it does. Too large: more than 4e9 fp64 operations, about a second of
/// the textbook, which runs each step of each recipe some twenty times. Too few rows: with fewer than eight (images,
/// tokens) in a batch all gradients come of so few numbers that a single one rounded the other way is outside of what
/// correct runs differ by (in bf16, of two images, 1 step in 100).
[[nodiscard]] std::string not_judged_reason(const Program& step);
/// Batches that come in turn, and so the fewest steps that show learning are two turns of them.
inline constexpr int training_batches = 4;

/// A recipe of a model.
struct RecipeLearning {
  std::string id;         ///< of the case
  std::string recipe;     ///< "bf16"
  std::string lacking{};  ///< why the device does not run it, in its words: the textbook in the recipe's types does;
                          ///< empty: the device does
  std::vector<StepParity> judged{};
  std::vector<double> losses{};       ///< of training by itself
  std::vector<double> low{}, high{};  ///< of three trainings whose every op errs at random within its bound
  Verdict verdict = Verdict::not_proven;
  std::string reason{};  ///< of any verdict but pass
};

/// A recipe that is broken on purpose.
struct BrokenLearning {
  std::string name, what, recipe;
  std::vector<StepParity> judged{};
  std::vector<double> losses{};
  int seen_in_step = 0;      ///< the first in which it was told apart by what it must be; 0: in none
  EndToEndResult seen_in{};  ///< of what told it apart in any, the largest error in units of what is allowed
};

/// A model in all recipes.
struct ModelLearning {
  std::string model;  ///< the id of its cases without their precision
  std::vector<double> exact_losses{};
  double exact_first = 0.0, exact_last = 0.0;  ///< mean fp64 losses of the first and the last turn of the batches
  std::vector<RecipeLearning> recipes{};
  std::vector<BrokenLearning> broken{};

  /// The worst of the recipes, emulated ones too; not_proven where a broken recipe was not told apart.
  [[nodiscard]] Verdict verdict() const;
};

struct LearningEffort {
  int steps = 32;         ///< of training by itself
  int judged_steps = 10;  ///< of these, the first ones are also judged one by one
  bool broken = true;     ///< whether broken recipes are tried
  /// Called with what there is of the model after each recipe.
  std::function<void(const ModelLearning&)> learned = [](const ModelLearning&) {};
  std::function<void()> alive = [] {};  ///< called before each step, by any thread
};

/// Trains one model in several recipes: `cases` differ in their precision only, and their programs train
/// (is_training_step()). `options`: seed, and a fault on purpose. `progress`: what is done now. Ends early, with what
/// there is, when `stop` is raised.
[[nodiscard]] ModelLearning learn(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                                  const LearningEffort& effort, const std::function<void(const std::string&)>& progress,
                                  const StopFlag& stop);

}  // namespace gpubench

// Recipes of training that are broken on purpose, as real ones have been: what judging each step must tell from the
// recipe as declared, although the loss may fall as if nothing were wrong. Each is the textbook in the recipe's types
// (TextbookTrainee) with one fault: an attribute, a source, or what an op left.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/verify/training.h"

namespace gpubench {

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

}  // namespace gpubench

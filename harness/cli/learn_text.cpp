#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/cli/finding_records.h"
#include "harness/cli/learn.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

std::string run_by(const RecipeLearning& recipe) { return recipe.lacking.empty() ? "device" : "emulated"; }

// "0.07", "1.3e+04", "inf".
std::string error_ratio_text(double ratio) {
  return ratio < 1000.0 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.1e}", ratio);
}

// The step with the largest error; null if none was judged.
const StepParity* worst_step(std::span<const StepParity> steps) {
  const auto found = std::ranges::max_element(steps, {}, &StepParity::worst);
  return found == steps.end() ? nullptr : &*found;
}

std::string from_to(std::span<const double> losses) {
  return losses.empty() ? "-" : fmt::format("{:.4f} -> {:.4f}", losses.front(), losses.back());
}

double apart(std::span<const double> a, std::span<const double> b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double distance = std::fabs(a[i] - b[i]);
    if (!(distance <= largest)) largest = distance;  // keeps NaN
  }
  return largest;
}

// Half the maximal width of the band.
double spread_of(const RecipeLearning& recipe) { return apart(recipe.low, recipe.high) / 2.0; }

}  // namespace

std::string table_of(const ModelLearning& model, const ConsoleStyle& style) {
  TextTable recipes(columns_titled({"verdict", "precision", "run by", "steps>", "err/allowed>", "tensor",
                                    "loss by itself", "off fp64>", "spread>"}));
  for (const RecipeLearning& recipe : model.recipes) {
    const StepParity* worst = worst_step(recipe.judged);
    const std::string verdict = verdict_word(recipe.verdict);
    recipes.add(
        {recipe.lacking.empty() ? verdict : "(" + verdict + ")", recipe.recipe, run_by(recipe),
         fmt::format("{}", recipe.judged.size()), worst == nullptr ? "-" : error_ratio_text(worst->worst),
         worst == nullptr ? "-" : worst->worst_tensor.tensor, from_to(recipe.losses),
         fmt::format("{:.1e}", apart(recipe.losses, model.exact_losses)), fmt::format("{:.1e}", spread_of(recipe))},
        tone_of(recipe.verdict), recipe.reason);
  }
  std::string text = fmt::format("{}\nfp64: loss {} in {} steps; mean of {} batches {:.3f} -> {:.3f}\n{}", model.model,
                                 from_to(model.exact_losses), model.exact_losses.size(), training_batches,
                                 model.exact_first, model.exact_last, recipes.text(style));
  if (model.broken.empty()) return text;
  TextTable broken(columns_titled(
      {"injected defect", "precision", "told apart", "err/allowed>", "tensor", "loss by itself", "off fp64>"}));
  for (const BrokenLearning& one : model.broken) {
    const bool seen = one.seen_in_step > 0;
    broken.add({one.name, one.recipe, seen ? fmt::format("step {}", one.seen_in_step) : "NO",
                seen ? error_ratio_text(error_over_allowed(one.seen_in)) : "-", seen ? one.seen_in.tensor : "-",
                from_to(one.losses), fmt::format("{:.1e}", apart(one.losses, model.exact_losses))},
               seen ? Tone::plain : Tone::bad);
  }
  return text + "\n" + broken.text(style);
}

Verdict verdict_of(std::span<const ModelLearning> models, const Completion& completion) {
  Verdict verdict = Verdict::pass;
  bool ran = false;
  for (const ModelLearning& model : models) {
    verdict = worse(verdict, model.verdict());
    ran = ran || std::ranges::any_of(model.recipes, [](const RecipeLearning& one) { return one.lacking.empty(); });
  }
  if (verdict != Verdict::pass) return verdict;
  return !completion.complete ? Verdict::skipped : ran ? Verdict::pass : Verdict::unsupported;
}

std::string summary_of(std::span<const ModelLearning> models, const Completion& completion, const ConsoleStyle& style) {
  std::size_t on_device = 0, emulated = 0, broken = 0, told = 0, alike = 0, steps = 0;
  for (const ModelLearning& model : models) {
    for (const RecipeLearning& recipe : model.recipes) {
      ++(recipe.lacking.empty() ? on_device : emulated);
      if (recipe.lacking.empty()) steps += recipe.judged.size();
    }
    broken += model.broken.size();
    for (const BrokenLearning& one : model.broken) {
      const auto own = std::ranges::find(model.recipes, one.recipe, &RecipeLearning::recipe);
      told += one.seen_in_step > 0 ? 1 : 0;
      if (own != model.recipes.end() &&
          apart(one.losses, model.exact_losses) <= 2.0 * apart(own->losses, model.exact_losses))
        ++alike;
    }
  }
  std::string text = fmt::format("{} recipes of {} models on the device, {} steps judged one by one\n", on_device,
                                 models.size(), steps);
  if (emulated > 0)
    text += fmt::format(
        "{} emulated: the device lacks the recipe, so the textbook trains in its types; that says nothing about the "
        "device\n",
        emulated);
  if (broken > 0)
    text += fmt::format(
        "{} of {} broken recipes detected by single steps; the losses of {} stay within twice the correct recipe's "
        "distance from fp64\n",
        told, broken, alike);
  text += "Losses alone are no evidence: verdicts come from single steps that start from the state of fp64.\n";
  if (!completion.complete) text += "learn " + completion.interrupted() + "\n";
  const Verdict verdict = verdict_of(models, completion);
  return text + paint(fmt::format("VERDICT  {}", verdict_word(verdict)), tone_of(verdict), style) + "\n";
}

Json json_of(const ModelLearning& model) {
  Json json = to_json(model);
  for (Json& one : json["broken"]) {
    if (!one["told_apart"].get<bool>()) one["first_step"] = one["by"] = nullptr;
  }
  return json;
}

}  // namespace gpubench

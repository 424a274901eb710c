#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "harness/cli/learn.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

page::DataTable steps_table(const chart::PlotChart& plot) {
  page::DataTable table{"", {{"Step", true}}, {}};
  std::size_t steps = 0;
  for (const chart::Series& series : plot.series) {
    table.columns.push_back({series.name, true});
    steps = std::max(steps, series.points.size());
  }
  for (std::size_t i = 0; i < steps; ++i) {
    std::vector<std::string> row{""};
    for (const chart::Series& series : plot.series) {
      const bool has = i < series.points.size();
      if (has) row.front() = fmt::format("{:.0f}", series.points[i].x);
      row.push_back(has ? fmt::format("{:.6g}", series.points[i].y) : "");
    }
    table.rows.push_back(std::move(row));
  }
  table.title = fmt::format("{} points a line", steps);
  return table;
}

page::DataTable recipes_table(const ModelLearning& model) {
  page::DataTable table{"",
                        {{"Verdict"},
                         {"Precision"},
                         {"Run by"},
                         {"Error / allowed", true},
                         {"Tensor"},
                         {"Loss, first", true},
                         {"Loss, last", true},
                         {"fp64, last", true}},
                        {}};
  for (const RecipeLearning& recipe : model.recipes) {
    const auto worst = std::ranges::max_element(recipe.judged, {}, &StepParity::worst);
    const bool ran = worst != recipe.judged.end() && !recipe.losses.empty();
    const std::string verdict = verdict_word(recipe.verdict);
    table.rows.push_back({recipe.lacking.empty() ? verdict : "(" + verdict + ")", recipe.recipe,
                          recipe.lacking.empty() ? "device" : "emulated",
                          ran ? fmt::format("{:.2f}", worst->worst) : "-", ran ? worst->worst_tensor.tensor : "-",
                          ran ? fmt::format("{:.4f}", recipe.losses.front()) : "-",
                          ran ? fmt::format("{:.4f}", recipe.losses.back()) : "-",
                          model.exact_losses.empty() ? "-" : fmt::format("{:.4f}", model.exact_losses.back())});
  }
  return table;
}

page::DataTable broken_table(const ModelLearning& model) {
  page::DataTable table{"",
                        {{"Injected defect"},
                         {"What is wrong"},
                         {"Precision"},
                         {"Told apart"},
                         {"Error / allowed", true},
                         {"Tensor"},
                         {"Loss, last", true}},
                        {}};
  for (const BrokenLearning& one : model.broken) {
    const bool seen = one.seen_in_step > 0;
    table.rows.push_back({one.name, one.what, one.recipe, seen ? fmt::format("in step {}", one.seen_in_step) : "no",
                          seen ? fmt::format("{:.3g}", error_over_allowed(one.seen_in)) : "-",
                          seen ? one.seen_in.tensor : "-",
                          one.losses.empty() ? "-" : fmt::format("{:.4f}", one.losses.back())});
  }
  return table;
}

// Reasons of recipes that did not pass, and of substitutes for the device's recipes.
void add_reasons(page::Html& html, const ModelLearning& model) {
  for (const RecipeLearning& recipe : model.recipes) {
    if (!recipe.reason.empty())
      html.element("p", fmt::format("{}: {}", recipe.recipe, recipe.reason), "class=\"warning\"").raw("\n");
    if (!recipe.lacking.empty())
      html.element("p", fmt::format("{} is emulated: {}", recipe.recipe, recipe.lacking), "class=\"note\"").raw("\n");
  }
}

page::SectionPart part_of(const ModelLearning& model) {
  page::SectionPart part;
  add_table(part.tables, recipes_table(model), "Recipes of " + model.model);
  add_reasons(part.tables, model);
  if (!model.broken.empty()) add_table(part.tables, broken_table(model), "Broken recipes of " + model.model);
  for (LearningChart& one : charts_of(model)) {
    page::DataTable table = steps_table(one.plot);
    part.figures.push_back({one.key, std::move(one.plot), std::move(table)});
  }
  return part;
}

// "gpt2" of "transformer/gpt2_train_step/b=2,..."; the second of a workload is "gpt2-2".
std::vector<page::Section> sections_of(std::span<const ModelLearning> models) {
  std::vector<page::Section> sections;
  std::map<std::string, int> so_far;
  for (const ModelLearning& model : models) {
    const std::string name = model_name(model);
    const int number = ++so_far[name];
    const std::string key = name + (number > 1 ? fmt::format("-{}", number) : "");
    sections.push_back({key, model.model, {part_of(model)}});
    std::ranges::replace(sections.back().key, '_', '-');
  }
  return sections;
}

}  // namespace

std::vector<page::Drawing> learning_drawings(std::span<const ModelLearning> models) {
  return drawings_of(sections_of(models));
}

std::string learning_page(std::span<const ModelLearning> models, const Completion& completion,
                          const std::string& device) {
  page::Document document;
  document.title = "gpubench learn";
  document.made_by.raw("gpubench learn");
  document.heading = fmt::format("Training against fp64: {}", verdict_word(verdict_of(models, completion)));
  document.about = completion.complete ? device : fmt::format("{} · {}", device, completion.interrupted());
  document.opening.element(
      "p",
      "Verdicts come from single steps: each starts from the state of training in fp64, rounded once to the types of "
      "the recipe, and its loss, gradients, weights and moments are compared with the same step in fp64. Losses of "
      "training by itself are also shown, but are no evidence: broken recipes leave similar curves. If the device "
      "lacks a recipe, the textbook trains in its types instead; that says nothing about the device.",
      "class=\"lead\"");
  document.opening.raw("\n");
  document.sections = sections_of(models);
  document.footer = "Made by gpubench learn.";
  return html_of(std::move(document));
}

}  // namespace gpubench

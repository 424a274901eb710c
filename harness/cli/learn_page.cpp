// The page of `gpubench learn`, and its charts as files.
#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/learn.h"
#include "harness/page/html.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

using page::Html;

// A row for each step, a column for each series of the chart.
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
  table.title = fmt::format("Data: {} points a line", steps);
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
                        {{"Broken on purpose"},
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

// How many models of the same workload stand before this one.
std::size_t number_of(std::span<const ModelLearning> models, std::size_t i) {
  const auto workload = [](const ModelLearning& model) {
    return model.model.substr(0, model.model.find('/', model.model.find('/') + 1));
  };
  const auto is_alike = [&](const ModelLearning& one) { return workload(one) == workload(models[i]); };
  return static_cast<std::size_t>(std::ranges::count_if(models.first(i), is_alike));
}

// Why recipes did not pass, and why others than the device ran them.
void add_reasons(Html& html, const ModelLearning& model) {
  for (const RecipeLearning& recipe : model.recipes) {
    if (!recipe.reason.empty())
      html.element("p", fmt::format("{}: {}", recipe.recipe, recipe.reason), "class=\"warning\"").raw("\n");
    if (!recipe.lacking.empty())
      html.element("p", fmt::format("{} is emulated: {}", recipe.recipe, recipe.lacking), "class=\"note\"").raw("\n");
  }
}

constexpr std::string_view learn_style = R"(
main section { margin-top: 2.25rem; }
main .scroll { margin-top: .75rem; }
main .figures { margin-top: 1.5rem; }
footer { padding-block: 3rem; }
)";

}  // namespace

std::vector<page::Drawing> learning_drawings(std::span<const ModelLearning> models) {
  std::vector<page::Drawing> drawings;
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const LearningChart& one : charts_of(models[i], number_of(models, i))) {
      std::string drawing = chart::svg(one.plot, one.key, chart::Placement::file);
      if (!drawing.empty()) drawings.push_back({one.key, std::move(drawing)});
    }
  }
  return drawings;
}

std::string learning_page(std::span<const ModelLearning> models, const Completion& completion,
                          const std::string& device) {
  Html html;
  html.raw(
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>gpubench learn</title>\n<style>\n")
      .raw(chart::chart_style())
      .raw(page::style_sheet())
      .raw(learn_style)
      .raw("</style>\n</head>\n<body>\n<header class=\"masthead\">\n<p class=\"eyebrow\">gpubench learn</p>\n")
      .element("h1", fmt::format("Training against fp64: {}", verdict_word(verdict_of(models, completion))))
      .raw("\n")
      .element("p", completion.complete ? device : fmt::format("{} · {}", device, completion.interrupted()),
               "class=\"about\"")
      .raw("\n</header>\n<main id=\"main\">\n");
  html.raw(
      "<p class=\"lead\">Verdicts come from single steps: each starts from the state that training in fp64 has arrived "
      "at, rounded once to the types of the recipe, and its loss, gradients, weights and moments are compared with the "
      "same step in fp64. Losses of training by itself are shown beside, and are no evidence: recipes that are broken "
      "on "
      "purpose leave curves that look alike. Where the device lacks a recipe, the textbook in its types learns "
      "instead; "
      "that says nothing of the device.</p>\n");
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ModelLearning& model = models[i];
    html.raw("<section>\n<h2>").id(model.model).raw("</h2>\n");
    add_table(html, recipes_table(model), "Recipes of " + model.model);
    add_reasons(html, model);
    if (!model.broken.empty()) add_table(html, broken_table(model), "Broken recipes of " + model.model);
    html.raw("<div class=\"figures\">\n");
    for (const LearningChart& one : charts_of(model, number_of(models, i))) {
      const std::string drawing = chart::svg(one.plot, one.key, chart::Placement::page);
      if (drawing.empty()) continue;
      html.raw("<figure>\n").raw(drawing).raw("\n");
      add_folded_table(html, steps_table(one.plot), "Data of " + one.plot.title);
      html.raw("</figure>\n");
    }
    html.raw("</div>\n</section>\n");
  }
  html.raw("</main>\n<footer><p>Made by gpubench learn.</p></footer>\n</body>\n</html>\n");
  return html.take();
}

}  // namespace gpubench

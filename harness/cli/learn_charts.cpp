#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "harness/cli/learn.h"

namespace gpubench {
namespace {

std::string called(const RecipeLearning& recipe) {
  return recipe.lacking.empty() ? recipe.recipe : recipe.recipe + ", emulated";
}

chart::Axis step_axis() { return {.title = "step"}; }

/// Losses of free training, with the band of trainings with random errors, if there are some.
struct Losses {
  std::span<const double> of;
  std::span<const double> low{}, high{};
};

// The running mean over one turn of the batches, so that all points average the same batches.
chart::Series curve(std::string name, const Losses& losses) {
  constexpr std::size_t turn = training_batches;
  const auto mean_until = [](std::span<const double> all, std::size_t end) {
    const std::span<const double> part = all.subspan(end - turn, turn);
    return std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(turn);
  };
  chart::Series series{std::move(name), chart::Mark::line, {}};
  for (std::size_t end = turn; end <= losses.of.size(); ++end) {
    chart::Point point;
    point.x = static_cast<double>(end);
    point.y = mean_until(losses.of, end);
    if (end <= losses.low.size()) point.low = mean_until(losses.low, end);
    if (end <= losses.high.size()) point.high = mean_until(losses.high, end);
    point.note = fmt::format("{}, steps {} to {}: {:.5g}", series.name, end - turn + 1, end, point.y);
    series.points.push_back(std::move(point));
  }
  return series;
}

chart::PlotChart loss_plot(std::string title, std::string description) {
  chart::PlotChart plot;
  plot.title = std::move(title);
  plot.description =
      fmt::format("{} Each point is the mean of {} steps, a turn of the batches.", description, training_batches);
  plot.x = step_axis();
  plot.y = {.title = "loss", .unit = "nats"};
  return plot;
}

chart::PlotChart loss_chart(const ModelLearning& model) {
  chart::PlotChart plot = loss_plot(fmt::format("{}: loss", model_name(model)),
                                    "Loss of training by itself in each recipe and in fp64, with a band of three "
                                    "trainings with random errors within their bounds.");
  for (const RecipeLearning& recipe : model.recipes)
    plot.series.push_back(curve(called(recipe), {recipe.losses, recipe.low, recipe.high}));
  plot.series.push_back(curve("fp64", {model.exact_losses}));
  return plot;
}

chart::PlotChart distance_chart(const ModelLearning& model) {
  chart::PlotChart plot;
  plot.title = fmt::format("{}: distance from the fp64 loss", model_name(model));
  plot.description =
      "Distance of the loss of training by itself from that of fp64 at each step, on a logarithmic axis.";
  plot.x = step_axis();
  plot.y = {.title = "distance", .scale = chart::Scale::log10, .unit = "nats"};
  for (const RecipeLearning& recipe : model.recipes) {
    chart::Series series{called(recipe), chart::Mark::line, {}};
    for (std::size_t i = 0; i < std::min(recipe.losses.size(), model.exact_losses.size()); ++i) {
      chart::Point point;
      point.x = static_cast<double>(i + 1);
      point.y = std::fabs(recipe.losses[i] - model.exact_losses[i]);
      point.note = fmt::format("{}, step {}: {:.3g}", series.name, i + 1, point.y);
      series.points.push_back(std::move(point));
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

chart::Series errors(std::string name, std::span<const StepParity> steps) {
  chart::Series series{std::move(name), chart::Mark::line, {}};
  for (const StepParity& step : steps) {
    chart::Point point;
    point.x = step.step;
    point.y = step.worst;
    point.note =
        fmt::format("{}, step {}: {:.3g}, in '{}'", series.name, step.step, step.worst, step.worst_tensor.tensor);
    series.points.push_back(std::move(point));
  }
  return series;
}

chart::PlotChart step_plot(std::string title, std::string description) {
  chart::PlotChart plot;
  plot.title = std::move(title);
  plot.description = fmt::format(
      "{} The largest error of each step among gradients, weights and moments as a share of its bound; above 1 the "
      "step is rejected.",
      description);
  plot.x = step_axis();
  plot.y = {.title = "error / allowed", .scale = chart::Scale::log10};
  chart::Point one;
  one.y = 1.0;
  plot.guides.push_back({"allowed", {one}});
  return plot;
}

chart::PlotChart judged_chart(const ModelLearning& model) {
  chart::PlotChart plot = step_plot(fmt::format("{}: single steps against fp64", model_name(model)),
                                    "Steps from the state of training in fp64.");
  for (const RecipeLearning& recipe : model.recipes) plot.series.push_back(errors(called(recipe), recipe.judged));
  return plot;
}

}  // namespace

std::string model_name(const ModelLearning& model) {
  const std::size_t first = model.model.find('/') + 1;
  const std::string workload = model.model.substr(first, model.model.find('/', first) - first);
  return workload.substr(0, workload.find("_train_step"));
}

std::vector<LearningChart> charts_of(const ModelLearning& model) {
  std::vector<LearningChart> charts{
      {"loss", loss_chart(model)}, {"distance", distance_chart(model)}, {"steps", judged_chart(model)}};
  for (const RecipeLearning& recipe : model.recipes) {
    const std::string what = fmt::format("{}, {} broken", model_name(model), recipe.recipe);
    chart::PlotChart steps = step_plot(what + ": single steps", "The recipe, and broken variants of it.");
    chart::PlotChart losses =
        loss_plot(what + ": loss", "Loss of training by itself in the recipe, in broken variants of it, and in fp64.");
    steps.series.push_back(errors(called(recipe), recipe.judged));
    losses.series.push_back(curve(called(recipe), {recipe.losses, recipe.low, recipe.high}));
    for (const BrokenLearning& broken : model.broken) {
      if (broken.recipe != recipe.recipe) continue;
      steps.series.push_back(errors(broken.name, broken.judged));
      losses.series.push_back(curve(broken.name, {broken.losses}));
    }
    if (steps.series.size() == 1) continue;
    losses.series.push_back(curve("fp64", {model.exact_losses}));
    charts.push_back({recipe.recipe + "-broken-steps", std::move(steps)});
    charts.push_back({recipe.recipe + "-broken-loss", std::move(losses)});
  }
  for (LearningChart& chart : charts) std::ranges::replace(chart.key, '_', '-');
  return charts;
}

}  // namespace gpubench

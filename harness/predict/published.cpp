#include "harness/predict/published.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace gpubench {
namespace {

MeasuredStep at_rate(std::int64_t devices, std::int64_t batch, std::int64_t sequence, const ParallelLayout& layout,
                     double sequences_per_s) {
  return {{devices, batch, sequence, layout}, static_cast<double>(batch) / sequences_per_s};
}

// MLPerf series: `tracked_stats` of throughput in the logs, sequences/s or tokens/s over the run.
std::vector<PublishedSeries> all_series() {
  std::vector<PublishedSeries> all;
  const Network h100{};

  const ParallelLayout llama{8, 8, 2, 1, 8, 1};
  PublishedSeries v5{"MLPerf v5.0, Llama 3.1 405B, FP8",        "llama3-405b", "H100",
                     "mlcommons/training_results_v5.0, NVIDIA", h100,          {}};
  v5.steps = {at_rate(512, 1152, 8192, llama, 20.9), at_rate(2048, 1152, 8192, llama, 81.0),
              at_rate(2432, 1216, 8192, llama, 95.4), at_rate(2560, 1120, 8192, llama, 99.8),
              at_rate(8192, 1536, 8192, llama, 292.2)};
  all.push_back(std::move(v5));

  // Batches per replica are 128, 128 and 64 sequences in the published configurations. The 32 of 3,584 devices are
  // inferred from the rate.
  const ParallelLayout gpt3{4, 8, 1, 1, 4, 1};
  PublishedSeries v3{"MLPerf v3.0, GPT-3 175B, FP8",
                     "gpt3-175b",
                     "H100",
                     "mlcommons/training_results_v3.0, NVIDIA and CoreWeave",
                     h100,
                     {}};
  v3.steps = {at_rate(512, 2048, 2048, gpt3, 313.2e3 / 2048.0), at_rate(768, 3072, 2048, gpt3, 468.1e3 / 2048.0),
              at_rate(1536, 3072, 2048, gpt3, 888.5e3 / 2048.0), at_rate(3584, 3584, 2048, gpt3, 1.847e6 / 2048.0)};
  all.push_back(std::move(v3));

  // Throughput between evaluations; 128, 16 or 8 sequences per replica; one layer per virtual part.
  const ParallelLayout in_layers{4, 8, 1, 1, 12, 1};
  PublishedSeries v31{
      "MLPerf v3.1, GPT-3 175B, FP8", "gpt3-175b", "H100", "mlcommons/training_results_v3.1, NVIDIA", h100, {}};
  v31.steps = {at_rate(512, 2048, 2048, in_layers, 185.1),    at_rate(4096, 2048, 2048, in_layers, 1259.0),
               at_rate(6144, 3072, 2048, in_layers, 1867.0),  at_rate(8192, 4096, 2048, in_layers, 2496.0),
               at_rate(10240, 2560, 2048, in_layers, 2703.0), at_rate(10752, 2688, 2048, in_layers, 2805.0)};
  all.push_back(std::move(v31));

  PublishedSeries v4{
      "MLPerf v4.0, GPT-3 175B, FP8", "gpt3-175b", "H100", "mlcommons/training_results_v4.0, NVIDIA", h100, {}};
  v4.steps = {at_rate(512, 2048, 2048, {4, 8, 1, 1, 4, 2}, 429.6e3 / 2048.0),
              at_rate(10752, 2688, 2048, {4, 6, 1, 1, 8, 1}, 5.98e6 / 2048.0),
              at_rate(11616, 2904, 2048, {4, 6, 1, 1, 8, 1}, 6.45e6 / 2048.0)};
  all.push_back(std::move(v4));

  // Weak scaling. The tables give layout and time; two sequences per device are inferred from the rate.
  const ParallelLayout llama70{4, 4, 2, 1, 5, 1};
  PublishedSeries weak{"weak scaling, Llama 3.1 70B, BF16", "llama3-70b", "H100",
                       "NVIDIA/dgxc-benchmarking 25.02",    h100,         {}};
  const auto weakly = [&](std::int64_t devices, double seconds) {
    return MeasuredStep{{devices, 2 * devices, 8192, llama70}, seconds};
  };
  weak.steps = {weakly(64, 14.61),  weakly(128, 14.70),  weakly(256, 14.72),
                weakly(512, 14.80), weakly(1024, 14.86), weakly(2048, 14.84)};
  all.push_back(std::move(weak));
  return all;
}

}  // namespace

std::span<const PublishedSeries> published_series() {
  static const std::vector<PublishedSeries> all = all_series();
  return all;
}

SeriesScore score_of(const PublishedSeries& series) {
  const TransformerModel* const model = find_model(series.model);
  if (model == nullptr) throw std::logic_error("no model '" + std::string(series.model) + "'");
  const std::span<const MeasuredStep> steps(series.steps);
  SeriesScore score{fit(*model, steps.first(2), series.network), {}};
  const MeasuredStep& first = steps.front();
  for (const MeasuredStep& step : steps.subspan(2)) {
    const StepTerms terms = terms_of(*model, step.shape, series.network);
    const double predicted = score.model.seconds(terms, step.shape.devices);
    const double work = static_cast<double>(step.shape.global_batch) / static_cast<double>(first.shape.global_batch);
    const double devices = static_cast<double>(step.shape.devices) / static_cast<double>(first.shape.devices);
    score.steps.push_back({step.shape.devices, step.seconds, predicted, first.seconds * work / devices,
                           is_weak(*model, terms, steps.first(2), series.network)});
  }
  return score;
}

bool is_weak(const TransformerModel& model, const StepTerms& terms, std::span<const MeasuredStep> steps,
             const Network& network) {
  constexpr double alike = 0.02;
  return std::ranges::any_of(steps, [&](const MeasuredStep& step) {
    return std::fabs(terms.flop / terms_of(model, step.shape, network).flop - 1.0) < alike;
  });
}

const PublishedErrors& published_errors() {
  static const PublishedErrors all = [] {
    PublishedErrors errors;
    const auto add = [](Errors& to, double error) {
      to.mean = (to.mean * to.count + error) / (to.count + 1);
      to.root_mean_square = std::hypot(to.root_mean_square * std::sqrt(to.count), error) / std::sqrt(to.count + 1);
      to.worst = std::max(to.worst, error);
      ++to.count;
    };
    for (const PublishedSeries& series : published_series()) {
      for (const PredictedStep& step : score_of(series).steps)
        add(step.weak ? errors.weak : errors.strong, std::fabs(step.error()));
    }
    return errors;
  }();
  return all;
}

}  // namespace gpubench

// Published measurements of training on many devices, and the errors of their prediction from the smallest steps.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "harness/predict/step_time.h"

namespace gpubench {

/// Steps of one model and device type, the smallest first.
struct PublishedSeries {
  std::string_view name, model, devices, source;
  Network network;
  std::vector<MeasuredStep> steps;
};
[[nodiscard]] std::span<const PublishedSeries> published_series();

/// Largest published training: Llama 3 405B on 16,384 H100 (arXiv 2407.21783, section 3.3).
inline constexpr std::int64_t max_published_devices = 16'384;

/// A step that is not part of the fit.
struct PredictedStep {
  std::int64_t devices = 0;
  double measured_s = 0.0, predicted_s = 0.0;
  double constant_s = 0.0;  ///< at the smallest step's throughput per device
  bool weak = false;        ///< is_weak()
  [[nodiscard]] double error() const { return predicted_s / measured_s - 1.0; }
  [[nodiscard]] double error_of_constant() const { return constant_s / measured_s - 1.0; }
};

struct SeriesScore {
  StepModel model;
  std::vector<PredictedStep> steps;
};
[[nodiscard]] SeriesScore score_of(const PublishedSeries& series);

/// Whether the work per device equals that of one of the steps within 2% (weak scaling).
[[nodiscard]] bool is_weak(const TransformerModel& model, const StepTerms& terms, std::span<const MeasuredStep> steps,
                           const Network& network);

/// Absolute relative errors of the predicted steps of all series.
struct Errors {
  int count = 0;
  double mean = 0.0, worst = 0.0, root_mean_square = 0.0;
};
struct PublishedErrors {
  Errors weak, strong;
};
[[nodiscard]] const PublishedErrors& published_errors();

}  // namespace gpubench

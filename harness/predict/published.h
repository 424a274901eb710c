// What others have published of training on many devices, and how well it is predicted from its smallest steps.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "harness/predict/step_time.h"

namespace gpubench {

/// Steps of one model and kind of device, the smallest first.
struct PublishedSeries {
  std::string_view name, model, devices, source;
  Network network;
  std::vector<MeasuredStep> steps;
};
[[nodiscard]] std::span<const PublishedSeries> published_series();

/// The most devices that anything was published of: Llama 3 405B on 16,384 H100 (arXiv 2407.21783, section 3.3).
inline constexpr std::int64_t max_published_devices = 16'384;

/// One step that took no part in the fit.
struct PredictedStep {
  std::int64_t devices = 0;
  double measured_s = 0.0, predicted_s = 0.0;
  double constant_s = 0.0;  ///< at the smallest step's throughput per device
  bool weak = false;        ///< a device has as much work as in one of the fitted steps
  [[nodiscard]] double error() const { return predicted_s / measured_s - 1.0; }
  [[nodiscard]] double error_of_constant() const { return constant_s / measured_s - 1.0; }
};

struct SeriesScore {
  StepModel model;
  std::vector<PredictedStep> steps;
};
/// The two smallest steps are fitted, all others predicted.
[[nodiscard]] SeriesScore score_of(const PublishedSeries& series);

/// Whether a device has as much work as in one of these steps (weak scaling).
[[nodiscard]] bool is_weak(const TransformerModel& model, const StepTerms& terms, std::span<const MeasuredStep> steps,
                           const Network& network);

/// Of the errors of predicted steps of all series, without their signs.
struct Errors {
  int count = 0;
  double mean = 0.0, worst = 0.0, root_mean_square = 0.0;
};
struct PublishedErrors {
  Errors weak, strong;  ///< strong: the others
};
[[nodiscard]] const PublishedErrors& published_errors();

}  // namespace gpubench

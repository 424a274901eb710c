#include "harness/predict/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace gpubench {
namespace {

constexpr std::size_t max_sizes = 1000;
constexpr std::int64_t far_from_measured = 16;  // multiple of the measured devices
constexpr double little = 0.05;

/// The fit with an assumed exposed share of the wire time, limited to half of a step.
StepModel assuming(double exposed, const PredictionRequest& request) {
  const MeasuredStep& step = request.measured.front();
  const double wire_s = terms_of(request.model, step.shape, request.network).wire.seconds;
  const double share = std::min(exposed, wire_s > 0.0 ? 0.5 * step.seconds / wire_s : 0.0);
  return fit(request.model, request.measured, request.network, share);
}

/// Error of the growth fitted to two measured steps: twice the RMS error of published weak scaling (two steps:
/// sqrt(2)), per doubling.
double growth_error(std::span<const MeasuredStep> measured) {
  const double doublings = std::log2(static_cast<double>(measured.back().shape.devices) /
                                     static_cast<double>(measured.front().shape.devices));
  return doublings > 0.0
             ? std::min(max_growth, 2.0 * std::sqrt(2.0) * published_errors().weak.root_mean_square / doublings)
             : max_growth;
}

/// The most likely model, and the models with the shortest and the longest steps that the request allows.
struct Allowed {
  StepModel likely, fastest, slowest;
};

Allowed allowed_by(const PredictionRequest& request) {
  if (request.measured.empty() == !request.flop_per_s.has_value())
    throw std::invalid_argument("expected either measured steps or a rate, not both");
  Allowed all;
  if (request.flop_per_s) {
    const std::int64_t first = request.devices.empty() ? 1 : request.devices.front();
    all.likely = {*request.flop_per_s, 1.0, usual_growth, first};
    all.fastest = {*request.flop_per_s, 0.0, 0.0, first};
    all.slowest = {*request.flop_per_s, max_exposed, max_growth, first};
    return all;
  }
  all.likely = all.fastest = all.slowest = fit(request.model, request.measured, request.network);
  if (all.likely.assumes_exposure) {
    all.fastest = assuming(0.0, request);
    all.slowest = assuming(max_exposed, request);
  }
  const bool is_one = request.measured.size() == 1;  // one step does not determine the growth
  const double error = is_one ? max_growth : growth_error(request.measured);
  all.fastest.growth = is_one ? 0.0 : std::max(0.0, all.fastest.growth - error);
  all.slowest.growth = is_one ? max_growth : std::min(max_growth, all.slowest.growth + error);
  return all;
}

/// Largest size that is not an extrapolation, and why larger ones are.
struct Reach {
  std::int64_t devices = 0;
  std::string why;
};

Reach reach_of(const PredictionRequest& request) {
  Reach reach{max_published_devices,
              fmt::format("beyond {} devices, the largest published training", max_published_devices)};
  if (request.measured.empty()) return reach;
  const std::int64_t measured = request.measured.back().shape.devices;
  if (measured * far_from_measured < reach.devices)
    reach = {measured * far_from_measured, fmt::format("more than {} times {}", far_from_measured, measured)};
  return reach;
}

PredictedSize at_size(std::int64_t devices, const PredictionRequest& request, const Allowed& models,
                      const Reach& reach) {
  PredictedSize size;
  size.devices = devices;
  size.global_batch = batch_on(devices, request);
  try {
    const StepShape shape{devices, size.global_batch, request.sequence, request.layout};
    size.terms = terms_of(request.model, shape, request.network);
    size.memory = memory_of(request.model, shape, size.terms);
  } catch (const std::invalid_argument& e) {
    size.failure = e.what();
    return size;
  }
  const StepModel& model = models.likely;
  size.seconds = model.seconds(size.terms, devices);
  const bool weak = is_weak(request.model, size.terms, request.measured, request.network);
  const double of_series = 2.0 * (weak ? published_errors().weak : published_errors().strong).root_mean_square;
  const double a = models.fastest.seconds(size.terms, devices), b = models.slowest.seconds(size.terms, devices);
  size.low_s = std::min({a, b, size.seconds}) * (1.0 - of_series);
  size.high_s = std::max({a, b, size.seconds}) * (1.0 + of_series);
  if (devices > reach.devices) {
    size.extrapolated = reach.why;
    const double doublings = std::log2(static_cast<double>(devices) / static_cast<double>(reach.devices));
    size.high_s *= 1.0 + max_growth * doublings;  // not measured: assume the worst growth
  }
  const double tokens = static_cast<double>(size.global_batch) * static_cast<double>(request.sequence);
  size.tokens_per_s = tokens / size.seconds;
  const double flop = tokens * request.model.flop_per_token(request.sequence) / static_cast<double>(devices);
  size.flop_per_s = flop / size.seconds;
  size.efficiency = size.flop_per_s / model.flop_per_s;
  const double working = size.terms.flop / model.flop_per_s;
  size.bubble = size.terms.bubble * working / size.seconds;
  size.wire = model.exposed * size.terms.wire.seconds / size.seconds;
  size.slowest = slowest_of(size.terms.wire, request.network);
  size.growth = 1.0 - (working + model.exposed * size.terms.wire.seconds) / size.seconds;
  return size;
}

std::int64_t extent(std::string_view digits, std::string_view word) {
  if (const std::optional<std::int64_t> value = extent_in(digits)) return *value;
  throw std::invalid_argument(fmt::format(
      "'{}' is not a size; expected a number from 1 to {}, or a range such as 64..16384:x2 or 100..1000:+100", word,
      max_extent));
}

}  // namespace

std::string PredictedSize::limit() const {
  if (bubble + wire + growth < little) return "work";
  if (bubble >= wire && bubble >= growth) return "bubble";
  return wire >= growth ? "wire" : "growth";
}

std::int64_t batch_on(std::int64_t devices, const PredictionRequest& request) {
  const std::int64_t replicas = std::max<std::int64_t>(1, devices / request.layout.replica());
  return request.global_batch.value_or(replicas * request.layout.micro_batch * request.micro_batches);
}

Prediction predict(const PredictionRequest& request) {
  const Allowed models = allowed_by(request);
  const Reach reach = reach_of(request);
  Prediction prediction{models.likely, {}};
  for (const std::int64_t devices : request.devices)
    prediction.sizes.push_back(at_size(devices, request, models, reach));
  return prediction;
}

std::vector<std::int64_t> parse_sizes(std::span<const std::string> words) {
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    if (sizes.size() == max_sizes) throw std::invalid_argument(fmt::format("more than {} sizes", max_sizes));
    sizes.push_back(size);
  };
  for (const std::string& word : words) {
    const std::string_view text = word;
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) {
      add(extent(text, word));
      continue;
    }
    const std::size_t colon = text.find(':', dots);
    const std::string_view step = colon == std::string_view::npos ? "x2" : text.substr(colon + 1);
    const std::int64_t first = extent(text.substr(0, dots), word);
    const std::int64_t last =
        extent(text.substr(dots + 2, colon == std::string_view::npos ? colon : colon - dots - 2), word);
    const bool times = step.starts_with("x");
    if (!times && !step.starts_with("+")) (void)extent("", word);
    const std::int64_t by = extent(step.substr(1), word);
    if (last < first || (times && by < 2)) (void)extent("", word);
    for (std::int64_t size = first; size <= last; size = times ? size * by : size + by) add(size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace gpubench

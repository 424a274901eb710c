// A plan of training on several sizes of a cluster: step time, throughput, what is lost where, days and money.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/predict/published.h"
#include "harness/predict/step_time.h"

namespace gpubench {

/// What is asked. One of `measured` and `flop_per_s` is given.
struct PredictionRequest {
  TransformerModel model;
  ParallelLayout layout{};
  std::int64_t sequence = 8192;
  std::optional<std::int64_t> global_batch{};  ///< sequences, whatever the size (strong scaling)
  std::int64_t micro_batches = 32;             ///< of each replica, where there is no global batch (weak scaling)
  std::vector<std::int64_t> devices{};         ///< sizes to predict
  std::vector<MeasuredStep> measured{};        ///< one or two, in this layout, the smaller first
  std::optional<double> flop_per_s{};          ///< of a device while it works
  Network network{};
};

/// The batch of a step on so many devices: the global one, or as many micro-batches for each replica.
[[nodiscard]] std::int64_t batch_on(std::int64_t devices, const PredictionRequest& request);

/// One size. Shares are of the step.
struct PredictedSize {
  std::int64_t devices = 0;
  std::string failure;  ///< set where the size doesn't fit the layout or the batch; then nothing else is
  StepTerms terms{};
  DeviceMemory memory{};
  std::int64_t global_batch = 0;
  double seconds = 0.0, low_s = 0.0, high_s = 0.0;  ///< of a step
  double tokens_per_s = 0.0;
  double flop_per_s = 0.0;  ///< model FLOP of a device in a second
  double efficiency = 0.0;  ///< tokens_per_s of a device over that of a device with no bubble, wire or growth
  double bubble = 0.0, wire = 0.0, growth = 0.0;
  std::string slowest;       ///< level of the network, where most of the wire's time goes (slowest_of)
  std::string extrapolated;  ///< why it goes beyond what is known; empty: it doesn't

  /// The largest of the three: "bubble", "wire", "growth"; "work" where they are less than 5% together.
  [[nodiscard]] std::string limit() const;
};

struct Prediction {
  StepModel model;
  std::vector<PredictedSize> sizes;
};

/// Throws std::invalid_argument where the measured steps don't fit, and for no or both of `measured` and `flop_per_s`.
[[nodiscard]] Prediction predict(const PredictionRequest& request);

/// "512", "64..16384:x2", "100..1000:+100": the sizes, ascending, each once. Throws std::invalid_argument.
[[nodiscard]] std::vector<std::int64_t> parse_sizes(std::span<const std::string> words);

}  // namespace gpubench

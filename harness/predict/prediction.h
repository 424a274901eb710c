// Predicted training steps on clusters of several sizes: step time, throughput, losses by cause, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/predict/published.h"
#include "harness/predict/step_time.h"

namespace gpubench {

/// Exactly one of `measured` and `flop_per_s` must be given.
struct PredictionRequest {
  TransformerModel model;
  ParallelLayout layout{};
  std::int64_t sequence = 8192;
  std::optional<std::int64_t> global_batch{};  ///< sequences at every size (strong scaling)
  std::int64_t micro_batches = 32;             ///< per replica, without a global batch (weak scaling)
  std::vector<std::int64_t> devices{};         ///< sizes to predict
  std::vector<MeasuredStep> measured{};        ///< one or two in this layout, the smaller first
  std::optional<double> flop_per_s{};          ///< of a busy device
  Network network{};
};

/// Sequences of a step: the global batch, or micro_batches of each replica.
[[nodiscard]] std::int64_t batch_on(std::int64_t devices, const PredictionRequest& request);

/// One size. Shares are of the step.
struct PredictedSize {
  std::int64_t devices = 0;
  std::string failure;  ///< set if the size does not fit the layout or batch; then the fields below are not set
  StepTerms terms{};
  DeviceMemory memory{};
  std::int64_t global_batch = 0;
  double seconds = 0.0, low_s = 0.0, high_s = 0.0;  ///< of a step
  double tokens_per_s = 0.0;
  double flop_per_s = 0.0;  ///< model FLOP/s per device
  double efficiency = 0.0;  ///< throughput relative to a step without bubble, wire and growth
  double bubble = 0.0, wire = 0.0, growth = 0.0;
  std::string slowest;       ///< network level with most of the wire time (slowest_of)
  std::string extrapolated;  ///< why the size is an extrapolation; empty: it is not

  /// The largest of "bubble", "wire" and "growth"; "work" if they sum to less than 5%.
  [[nodiscard]] std::string limit() const;
};

struct Prediction {
  StepModel model;
  std::vector<PredictedSize> sizes;
};

/// Throws std::invalid_argument if no model fits the measured steps, and for none or both of `measured` and
/// `flop_per_s`.
[[nodiscard]] Prediction predict(const PredictionRequest& request);

/// Sizes such as "512", "64..16384:x2", "100..1000:+100"; ascending, each once. Throws std::invalid_argument.
[[nodiscard]] std::vector<std::int64_t> parse_sizes(std::span<const std::string> words);

}  // namespace gpubench

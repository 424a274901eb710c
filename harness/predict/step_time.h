// Model of the time of a training step on n devices:
//
//   T(n) = [ F (m + (pp - 1) / vp) / r + x W ] (1 + g log2(n / n0))
//
// F: model FLOP of a micro-batch on one device
// m: micro-batches of a step; a pipeline of pp stages in vp parts idles for (pp - 1) / vp more
//    (Narayanan et al., arXiv 2104.04473, section 2.2)
// r: FLOP/s of a busy device, including communication within a micro-batch (tensor, pipeline, expert)
// W: wire seconds to reduce gradients and gather weights once, with latency; x: share not hidden behind work
// g: growth per doubling of n (stragglers, shared network)
//
// Two measured steps determine r and x if their ratios of work to wire time differ, else r and g.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/network/levels.h"
#include "harness/predict/transformer_model.h"

namespace gpubench {

/// Seconds per step to reduce gradients and gather weights.
struct GradientExchange {
  double seconds = 0.0;
  double latency_s = 0.0;          ///< part of `seconds` beyond the bytes at full link bandwidth
  std::vector<double> by_level{};  ///< the bytes at full link bandwidth, by network level
  GradientExchange& operator+=(const GradientExchange& more);
};

/// sharded: reduce_scatter of gradients, all_gather of weights, which NCCL runs as rings. replicated: all_reduce of
/// gradients, as ring or tree.
enum class Optimizer { sharded, replicated };

/// `parameters`: of one device, exchanged among the group in buckets.
[[nodiscard]] GradientExchange exchange_of(double parameters, const Scattered& group, Optimizer optimizer,
                                           const Network& network);

/// The level with the most time, or "latency"; "none" if nothing is sent.
[[nodiscard]] std::string slowest_of(const GradientExchange& wire, const Network& network);

/// Limit of devices and of each axis of a layout; keeps products within 64 bits.
inline constexpr std::int64_t max_extent = 1 << 20;
/// A whole number from 1 to max_extent; nullopt for any other text.
[[nodiscard]] std::optional<std::int64_t> extent_in(std::string_view digits);

/// Parallel axes of a model; the remaining devices are data-parallel.
struct ParallelLayout {
  std::int64_t tensor = 1, pipeline = 1, context = 1;
  std::int64_t expert = 1;         ///< within the data-parallel and context devices; experts only
  std::int64_t virtual_parts = 1;  ///< of each pipeline stage (interleaved 1F1B)
  std::int64_t micro_batch = 1;    ///< in sequences
  Optimizer optimizer = Optimizer::sharded;
  /// Devices of one data-parallel replica.
  [[nodiscard]] std::int64_t replica() const { return tensor * pipeline * context; }
  friend bool operator==(const ParallelLayout&, const ParallelLayout&) = default;
};

/// "tp=8,pp=8,cp=2,ep=1,vp=8,mbs=1", each at most once. Throws std::invalid_argument.
[[nodiscard]] ParallelLayout parse_layout(std::string_view text);
[[nodiscard]] std::string to_string(const ParallelLayout& layout);

/// `global_batch`: sequences; `sequence`: tokens of each.
struct StepShape {
  std::int64_t devices = 0, global_batch = 0, sequence = 0;
  ParallelLayout layout;
};

/// The terms of T(n) that need no measurement.
struct StepTerms {
  std::int64_t replicas = 0;       ///< data-parallel
  std::int64_t sharing = 0;        ///< devices with the same weights, except experts
  std::int64_t micro_batches = 0;  ///< per replica
  double flop = 0.0;               ///< per device, pipeline idle time counted as work: F (m + (pp - 1) / vp)
  double bubble = 0.0;             ///< share of idle time in `flop`
  GradientExchange wire{};         ///< W
};
/// Throws std::invalid_argument if replicas, micro-batches or experts do not divide evenly.
[[nodiscard]] StepTerms terms_of(const TransformerModel& model, const StepShape& shape, const Network& network);

struct MeasuredStep {
  StepShape shape;
  double seconds = 0.0;
};

/// r, x, g and n0 of T(n).
struct StepModel {
  double flop_per_s = 0.0;
  double exposed = 1.0;
  double growth = 0.0;
  std::int64_t first = 1;
  bool assumes_exposure = false;  ///< the measured steps don't determine x

  [[nodiscard]] double seconds(const StepTerms& terms, std::int64_t devices) const;
};

/// Default growth per doubling: weak-scaling tables (NVIDIA/dgxc-benchmarking 25.02, H100) show 0.3% to 1.2% between
/// their first and last size.
inline constexpr double usual_growth = 0.006;

/// Limits of a fit; all published series are within them. Exposure above 1 stands for a shared network.
inline constexpr double max_exposed = 1.5, max_growth = 0.02;

/// Fits one or two measured steps, the smaller first, on their `network`. `exposed`: x if they do not determine it.
/// Throws std::invalid_argument for other counts, and for a step shorter than its exposed wire time.
[[nodiscard]] StepModel fit(const TransformerModel& model, std::span<const MeasuredStep> measured,
                            const Network& network, double exposed = 1.0);

/// Bytes on the device that needs the most: the first pipeline stage, with the most micro-batches in flight.
struct DeviceMemory {
  double weights = 0.0;      ///< 2 bytes per parameter
  double gradients = 0.0;    ///< 4 bytes per parameter
  double optimizer = 0.0;    ///< 12 bytes per parameter (master, two moments); divided among `sharing` if sharded
  double activations = 0.0;  ///< read by the backward, 16 bits each, of all micro-batches in flight
  double recomputed = 0.0;   ///< `activations` if each layer keeps only its input and recomputes the rest

  [[nodiscard]] double kept() const { return weights + gradients + optimizer; }
  [[nodiscard]] double total() const { return kept() + activations; }
  [[nodiscard]] double least() const { return kept() + recomputed; }
};

/// Mixed precision, distributed optimizer (Megatron-LM: 6 + 12 / d bytes per parameter), attention without stored
/// scores, activations split over tp and cp (Korthikanti et al., arXiv 2205.05198). Excludes library buffers and
/// allocator overhead. `terms` must be of `shape`.
[[nodiscard]] DeviceMemory memory_of(const TransformerModel& model, const StepShape& shape, const StepTerms& terms);

}  // namespace gpubench

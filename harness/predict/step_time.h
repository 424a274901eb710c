// How long a training step takes on many devices: what is known of the schedule by arithmetic, and the few numbers that
// must be measured.
//
//   T(n) = [ F (m + (pp - 1) / vp) / r + x W ] (1 + g log2(n / n0))
//
// F: a micro-batch's model FLOP on one device; m: micro-batches of a step, over which a pipeline of pp stages, each in
// vp parts, idles for (pp - 1) / vp more (Narayanan et al., arXiv 2104.04473, section 2.2). r: FLOP/s that a device
// reaches while it works; communication within a micro-batch (tensor, pipeline, expert) is part of it, since it grows
// with the work. W: seconds on the wire to reduce gradients and gather weights once a step, latency included, of which
// the share x is not hidden behind work. g: what each doubling adds (stragglers, a network that is shared).
//
// r, x and g are what a fit finds. Two measured steps determine r and x where their pipelines are differently full,
// else r and g.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/predict/gradient_exchange.h"
#include "harness/predict/transformer_model.h"

namespace gpubench {

/// Of devices, and of each axis of a layout: products of what a plan multiplies stay within 64 bits.
inline constexpr std::int64_t most_extent = 1 << 20;

/// How a model lies on the devices. What is left beside these axes is data-parallel.
struct ParallelLayout {
  std::int64_t tensor = 1, pipeline = 1, context = 1;
  std::int64_t expert = 1;         ///< of the data-parallel and context devices; experts only
  std::int64_t virtual_parts = 1;  ///< of each pipeline stage (interleaved 1F1B)
  std::int64_t micro_batch = 1;    ///< sequences
  Optimizer optimizer = Optimizer::sharded;
  /// Devices that hold one copy of the model's work.
  [[nodiscard]] std::int64_t replica() const { return tensor * pipeline * context; }
  friend bool operator==(const ParallelLayout&, const ParallelLayout&) = default;
};

/// "tp=8,pp=8,cp=2,ep=1,vp=8,mbs=1", each once at most. Throws std::invalid_argument: what is wrong and what is
/// expected.
[[nodiscard]] ParallelLayout parse_layout(std::string_view text);
[[nodiscard]] std::string to_string(const ParallelLayout& layout);

/// One step of training: how many sequences, how long.
struct StepShape {
  std::int64_t devices = 0, global_batch = 0, sequence = 0;
  ParallelLayout layout;
};

/// What a step is made of, by arithmetic alone.
struct StepTerms {
  std::int64_t replicas = 0;       ///< data-parallel
  std::int64_t sharing = 0;        ///< devices with the same weights, but for experts
  std::int64_t micro_batches = 0;  ///< of each
  double flop = 0.0;    ///< of a device, with the time that the pipeline idles counted as work: F (m + bubble)
  double bubble = 0.0;  ///< share of that
  GradientExchange wire{};  ///< W
};
/// Throws std::invalid_argument where the devices don't make up whole replicas, or the batch no whole micro-batches.
[[nodiscard]] StepTerms terms_of(const TransformerModel& model, const StepShape& shape, const Network& network);

struct MeasuredStep {
  StepShape shape;
  double seconds = 0.0;
};

/// r, x, g and n0.
struct StepModel {
  double flop_per_s = 0.0;
  double exposed = 1.0;
  double growth = 0.0;
  std::int64_t first = 1;
  bool assumes_exposure = false;  ///< the measured steps don't determine x

  [[nodiscard]] double seconds(const StepTerms& terms, std::int64_t devices) const;
};

/// What each doubling adds where nothing tells: weak-scaling tables (NVIDIA/dgxc-benchmarking 25.02, H100) show 0.3% to
/// 1.2% between their first size and their last.
inline constexpr double usual_growth = 0.006;

/// As far as a fit goes: the published series lie within. More than all of the wire's time is a network that is shared.
inline constexpr double most_exposed = 1.5, most_growth = 0.02;

/// From one or two measured steps, the smaller first. `network` is theirs. `exposed`: x where they don't determine it.
/// Throws std::invalid_argument for other counts, and for steps that take less than what is on the wire.
[[nodiscard]] StepModel fit(const TransformerModel& model, std::span<const MeasuredStep> measured,
                            const Network& network, double exposed = 1.0);

}  // namespace gpubench

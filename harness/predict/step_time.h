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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/network/levels.h"
#include "harness/predict/transformer_model.h"

namespace gpubench {

// The time that reducing a step's gradients and gathering its weights takes on a network.

/// Seconds of a step.
struct GradientExchange {
  double seconds = 0.0;
  double latency_s = 0.0;          ///< of these, what links that are full from the first byte would save
  std::vector<double> by_level{};  ///< the others, by the network's levels
  GradientExchange& operator+=(const GradientExchange& more);
};

/// How the devices with the same weights agree on them. A sharded optimizer has gradients scattered and weights
/// gathered, for which NCCL has rings alone; a replicated one has gradients all-reduced, by ring or tree.
enum class Optimizer { sharded, replicated };

/// Of the parameters of a device, which the members of a group share, sent in buckets.
[[nodiscard]] GradientExchange exchange_of(double parameters, const Scattered& group, Optimizer optimizer,
                                           const Network& network);

/// Where most of the time goes: a level's name, or "latency"; "none" where nothing is sent.
[[nodiscard]] std::string slowest_of(const GradientExchange& wire, const Network& network);

/// Of devices, and of each axis of a layout: products of what a plan multiplies stay within 64 bits.
inline constexpr std::int64_t max_extent = 1 << 20;
/// A whole number from 1 to max_extent; nothing for any other text.
[[nodiscard]] std::optional<std::int64_t> extent_in(std::string_view digits);

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
  double flop = 0.0;        ///< of a device, with the time that the pipeline idles counted as work: F (m + bubble)
  double bubble = 0.0;      ///< share of that
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
inline constexpr double max_exposed = 1.5, max_growth = 0.02;

/// From one or two measured steps, the smaller first. `network` is theirs. `exposed`: x where they don't determine it.
/// Throws std::invalid_argument for other counts, and for steps that take less than what is on the wire.
[[nodiscard]] StepModel fit(const TransformerModel& model, std::span<const MeasuredStep> measured,
                            const Network& network, double exposed = 1.0);

// What a device holds during a training step, by arithmetic alone.

/// Bytes, on the device that holds the most: of the first stage of a pipeline, whose micro-batches wait the longest.
struct DeviceMemory {
  double weights = 0.0;    ///< 2 for each parameter of the device
  double gradients = 0.0;  ///< 4
  double optimizer =
      0.0;  ///< 12: master and two moments; where it is sharded, shared by the devices with the same weights
  double activations = 0.0;  ///< what the backward reads of all micro-batches on their way, in 16 bits
  double recomputed = 0.0;   ///< the same where each layer keeps its input alone and is run again

  [[nodiscard]] double kept() const { return weights + gradients + optimizer; }
  [[nodiscard]] double total() const { return kept() + activations; }
  [[nodiscard]] double least() const { return kept() + recomputed; }
};

/// Mixed precision with a distributed optimizer (Megatron-LM: 6 + 12 / d bytes for each parameter), attention that
/// keeps no scores, and activations in parts on the ranks of tp and cp (Korthikanti et al., arXiv 2205.05198). Buffers
/// of libraries and what an allocator leaves over come on top. `terms`: of the same shape.
[[nodiscard]] DeviceMemory memory_of(const TransformerModel& model, const StepShape& shape, const StepTerms& terms);

}  // namespace gpubench

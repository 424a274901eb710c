// What a device holds during a training step, by arithmetic alone.
#pragma once

#include "harness/predict/step_time.h"

namespace gpubench {

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

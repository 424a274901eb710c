// Choosing among implementations by timing them, outside of all measurement.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Positions in a call's tensors that share memory: (output, the input that it updates).
using Aliases = std::vector<std::pair<int, int>>;

/// The fastest of the candidates on this device, each timed on scratch tensors like `tensors` with random data, in
/// enough rotating sets that they do not stay in the cache. First all a little, then the best few longer, interleaved.
/// A candidate that cannot be bound or enqueued is passed over. Where not even one set fits memory, the first candidate
/// is taken: the library's own first choice.
/// A pinned call takes the candidate of that name, untimed; so does one whose remembered implementation is among them.
/// Throws Unsupported ("cuda <kind> '<label>': ...") when there is none, none works, or the pinned one is not there.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const Aliases& aliases, const CudaContext& context);

}  // namespace gpubench::cuda

// Choosing among implementations by timing them, outside of all measurement, once their results have been looked at.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"
#include "reference/cuda/tuning_sets.h"

namespace gpubench::cuda {

/// The fastest of the candidates whose results are right on this device. Each is timed on scratch tensors like
/// `tensors` with random data (tuning_sets.h), right behind untimed runs of its own, so that all of them meet the clock
/// that such work runs at; candidates take turns. First all a little, then the best few longer.
///
/// Before a candidate may be one of these few, the judge (PlanOptions::judge) looks at what it computed. The plan tells
/// whom it rejected (PlanImpl::rejected). Where it rejects every one, the fastest is taken all the same: the check then
/// fails the case, which a library that computes wrong numbers deserves more than to be left out as unsupported.
///
/// A candidate that cannot be bound or enqueued is passed over. Where not even one set fits memory, the first candidate
/// is taken: the library's own first choice.
/// A pinned call takes the candidate of that name, untimed; so does one whose remembered implementation is among them.
/// Throws Unsupported ("cuda <kind> '<label>': ...") when there is none, none works, or the pinned one is not there.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const TuningData& data, const CudaContext& context);

}  // namespace gpubench::cuda

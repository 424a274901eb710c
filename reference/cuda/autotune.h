// Choosing the fastest of several correct implementations by timing, outside of all measurements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Positions in a call's tensors that share memory: (output, the input that it updates).
using Aliases = std::vector<std::pair<int, int>>;

struct TuningData {
  Aliases aliases{};
  /// Magnitudes lie in [0.25, 2) times 2^exponent, by position; exponent 0 for positions beyond the end.
  std::vector<int> exponents{};
  /// Whether random inputs give a meaningful result. If not, results are not judged: attention's gradient reads a
  /// log-sum-exp that must belong to its q and k.
  bool judged = true;
};

/// The fastest candidate whose results the judge (PlanOptions::judge) accepts on this device.
/// Candidates take turns on random scratch tensors (TuningSets). Untimed runs precede each timed sample, so that all
/// candidates run at the same clock rate. All candidates get a few samples, the best few get more.
///
/// PlanImpl::rejected lists candidates that the judge rejects. If it rejects all, the fastest is chosen and the check
/// fails the case: wrong numbers must not end as `unsupported`.
///
/// Candidates that cannot be bound or enqueued are skipped. Without memory for one set, or without a stream, the result
/// is the first candidate. A pinned or remembered implementation is chosen untimed.
/// Throws Unsupported ("cuda <kind> '<label>': ...") if there is no candidate, none works, or the pinned one is
/// missing.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const TuningData& data, const CudaContext& context);

/// Scratch tensors in rotating sets, with one shared workspace, for timing and judging candidates.
class TuningSets {
 public:
  /// Makes enough sets that three times the L2 size is touched between two uses of one; at most 1024, and as many as
  /// memory allows. Throws BackendError if not even one set fits.
  TuningSets(std::span<const TensorSpec> specs, const TuningData& data, std::size_t workspace_bytes,
             const CudaContext& context);

  [[nodiscard]] std::vector<Launch> bind(const CudaPlan& plan) const;

  /// ResultJudge::objection to `launch`, which must be bound to the first set. Runs it once, on the inputs that all
  /// candidates get, with outputs filled with NaN.
  [[nodiscard]] std::string objection(const OpCall& call, const Launch& launch);

 private:
  void fill(std::size_t set);

  const CudaContext& context_;
  TuningData data_;
  std::vector<std::vector<Tensor>> sets_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::shared_ptr<std::byte> workspace_;
  std::size_t workspace_bytes_ = 0;
  std::vector<std::vector<std::byte>> host_;  // of the first set, by tensor
  bool inputs_read_ = false;
};

}  // namespace gpubench::cuda

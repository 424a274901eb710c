// Choosing among implementations by timing them, outside of all measurement, once their results have been looked at.
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

/// What scratch tensors are like.
struct TuningData {
  Aliases aliases{};
  /// Numbers have magnitudes in [0.25, 2) times two to this power, by position; 1 for positions beyond the end.
  std::vector<int> exponents{};
  /// Whether any numbers will do as inputs. Else what comes out says nothing, and is not looked at: attention's
  /// gradient reads a log-sum-exp that belongs to its q and k.
  bool judged = true;
};

/// The fastest of the candidates whose results are right on this device. Each is timed on scratch tensors like
/// `tensors` with random data (TuningSets), right behind untimed runs of its own, so that all of them meet the clock
/// that such work runs at; candidates take turns. First all a little, then the best few longer.
///
/// Before a candidate may be one of these few, the judge (PlanOptions::judge) looks at what it computed. The plan tells
/// whom it rejected (PlanImpl::rejected). Where it rejects every one, the fastest is taken all the same: the check then
/// fails the case, which a library that computes wrong numbers deserves more than to be left out as unsupported.
///
/// A candidate that cannot be bound or enqueued is passed over. Where not even one set fits memory, or there is no
/// stream to time on, the first candidate is taken: the library's own first choice.
/// A pinned call takes the candidate of that name, untimed; so does one whose remembered implementation is among them.
/// Throws Unsupported ("cuda <kind> '<label>': ...") when there is none, none works, or the pinned one is not there.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const TuningData& data, const CudaContext& context);

/// What candidates are timed and judged on: scratch tensors in rotating sets, with a workspace that they share.
class TuningSets {
 public:
  /// As many sets as there must be for three times the second-level cache to pass by between two uses of one, as far as
  /// memory and a thousand sets go. Throws BackendError where not even one fits.
  TuningSets(std::span<const TensorSpec> specs, const TuningData& data, std::size_t workspace_bytes,
             const CudaContext& context);

  [[nodiscard]] std::vector<Launch> bind(const CudaPlan& plan) const;

  /// What the judge that the context has says of `launch`, which is bound to the first set; see ResultJudge::objection.
  /// The launch is run once, on the inputs that all candidates get, with outputs that hold NaN before.
  [[nodiscard]] std::string objection(const OpCall& call, const Launch& launch);

 private:
  void fill(std::size_t set);

  const CudaContext& context_;
  TuningData data_;
  std::vector<std::vector<Tensor>> sets_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::shared_ptr<std::byte> workspace_;
  std::size_t workspace_bytes_ = 0;
  std::vector<std::vector<std::byte>> host_;  // of the first set, in the order of its tensors
  bool inputs_read_ = false;
};

}  // namespace gpubench::cuda

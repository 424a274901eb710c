// What candidates are timed and judged on: scratch tensors in rotating sets, with a workspace that they share.
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

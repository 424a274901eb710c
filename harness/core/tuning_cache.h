// The fastest implementation of an op call in earlier runs. Backends get only the answer (PlanOptions::remembered);
// harness/report stores it in files (tuning_cache.h).
#pragma once

#include <map>
#include <span>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

using Choices = std::map<std::string, std::string>;

class TuningCache {
 public:
  virtual ~TuningCache() = default;
  /// The fastest implementation of such calls; empty if unknown.
  [[nodiscard]] virtual std::string recall(const std::string& key) const = 0;
  /// Stores these for later runs. Never throws: failures become a complaint.
  virtual void keep(const Choices& choices) = 0;
  /// A problem of the cache to report to the user, once; empty if there is none.
  [[nodiscard]] virtual std::string take_complaint() = 0;
};

class NoTuningCache final : public TuningCache {
 public:
  [[nodiscard]] std::string recall(const std::string& /*key*/) const override { return {}; }
  void keep(const Choices& /*choices*/) override {}
  [[nodiscard]] std::string take_complaint() override { return {}; }
};

/// The parameters that a choice depends on, except the device and its libraries: kind, attributes, arithmetic, and
/// type, shape, layout and memory of each tensor, without labels and names. `tensors`: inputs, then outputs. "gemm
/// transpose_b; sums f32; bf16[8, 768] bf16[8, 768]strides(768, 2) bf16[8, 8]" Part of a case's definition digest
/// (plan/plan.h): a change of the text changes all digests.
[[nodiscard]] std::string choice_key(const OpCall& call, std::span<const TensorSpec> tensors);

}  // namespace gpubench

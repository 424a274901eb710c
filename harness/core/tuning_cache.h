// The fastest of several implementations of an op call, as earlier runs found it. Backends only get the answer
// (PlanOptions::remembered); harness/report keeps it in files (tuning_cache.h).
#pragma once

#include <map>
#include <span>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// Implementations by the key of a call.
using Choices = std::map<std::string, std::string>;

class TuningCache {
 public:
  virtual ~TuningCache() = default;
  /// The implementation that was the fastest for such calls; empty where none is known.
  [[nodiscard]] virtual std::string recall(const std::string& key) const = 0;
  /// Stores these, for later runs too. Never throws: failures become a complaint.
  virtual void keep(const Choices& choices) = 0;
  /// A problem of the cache to report to the user, once; empty where there is none.
  [[nodiscard]] virtual std::string take_complaint() = 0;
};

/// Stores nothing.
class NoTuningCache final : public TuningCache {
 public:
  [[nodiscard]] std::string recall(const std::string& /*key*/) const override { return {}; }
  void keep(const Choices& /*choices*/) override {}
  [[nodiscard]] std::string take_complaint() override { return {}; }
};

/// All that a choice for the call depends on, except the device and its libraries: kind, attributes, arithmetic, and of
/// each tensor type, shape, layout and memory; not the call's label nor the names of its tensors. `tensors`: inputs,
/// then outputs. "gemm transpose_b; sums f32; bf16[8, 768] bf16[8, 768]strides(768, 2) bf16[8, 8]"
/// A case's definition is digested from these too (plan/plan.h): to word them otherwise changes them all.
[[nodiscard]] std::string choice_key(const OpCall& call, std::span<const TensorSpec> tensors);

}  // namespace gpubench

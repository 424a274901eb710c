// A recipe is what a case's precision names: the storage type of each kind of tensor and the arithmetic of each op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/dtype.h"

namespace gpubench {

/// The arithmetic an op promises. A bound is derived from this, never from what a backend happens to do.
struct Math {
  enum class Inputs { exact, tf32, emulated };
  DType accumulate = DType::f32;
  Inputs inputs = Inputs::exact;
  bool fast_accumulation = false;  ///< fp8 sums kept in fewer than 24 bits
  bool split_k_in_output = false;  ///< partial sums rounded to the output type
  friend bool operator==(const Math&, const Math&) = default;
};

struct Recipe {
  std::string_view name;      ///< "f32", "bf16"
  DType tensor = DType::f32;  ///< activations, weights in use, and their gradients
  DType wide = DType::f32;    ///< norm parameters, statistics, log-sum-exp, loss, master weights, optimizer state
  Math math;
};

/// Every recipe that the suites may name, in order of falling precision.
[[nodiscard]] std::span<const Recipe> recipes();

/// Throws UsageError naming the known ones.
[[nodiscard]] const Recipe& recipe(std::string_view name);

}  // namespace gpubench

// Sum over all rows: the gradient of a bias.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind column_sum_kind{"column_sum"};

/// x: [..., n] -> y: [n], y[j] = sum over all leading indices of x[..., j].
struct ColumnSum {
  friend bool operator==(const ColumnSum&, const ColumnSum&) = default;
};
[[nodiscard]] std::string describe(const ColumnSum& attributes);

/// `into`: a reserved value of another type than x (f32 bias gradients of bf16 activations).
ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into = {});

}  // namespace gpubench

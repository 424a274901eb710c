// Products of groups of rows with one matrix per group, such as experts. Group sizes are data.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind grouped_gemm_backward_weight_kind{"grouped_gemm_backward_weight", "a b sizes", "c", {}, R"(
The gradient of grouped_gemm's b, from its a and dc (dc and a when transpose_b).
a: [rows, m]
b: [rows, n]
sizes: i32 [groups]
c: [groups, m, n]

c[g] = a_g^T b_g, over the rows of group g; 0 for an empty one)"};

struct GroupedGemm {
  bool transpose_b = false;
  static void visit(auto&& attribute) { attribute("transpose_b", &GroupedGemm::transpose_b); }
};

inline constexpr OpKind grouped_gemm_kind{"grouped_gemm", "a b sizes", "c", defaults_of<GroupedGemm>, R"(
Products of groups of rows, one matrix per group: the experts of a mixture. Group sizes are data.
a: [m, k]
b: [groups, k, n]; [groups, n, k] when transpose_b
sizes: i32 [groups]
c: [m, n]

c[r] = a[r] op(b[g]) for the sizes[g] rows of group g; groups are contiguous and in order; 0 for rows after the last
group. Groups may be empty. Negative sizes, or a sum above the rows of a, are invalid.)"};

/// `into`: reserved for c. Default: named `label`, with a's type.
ValueId grouped_gemm(Program& program, const GroupedGemm& attributes, const Math& math, std::string label, ValueId a,
                     ValueId b, ValueId sizes, std::optional<ValueId> into = {});
ValueId grouped_gemm_backward_weight(Program& program, const Math& math, std::string label, ValueId a, ValueId b,
                                     ValueId sizes, std::optional<ValueId> into = {});

}  // namespace gpubench

// Six tiny cases for tests of the harness, with unique labels, so that a script can select an op.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace gpubench::sim {

/// Ids "sim/<name>/n=8/f32/x1", in this order:
///   first   y = gemm(x, w)                                             "first.gemm"
///   chain   y = gemm(gemm(x, w), v) + x                                 "chain.up", "chain.down", "chain.add"
///   update  c' = gemm(a, b) + c, in place                               "update.gemm"
///   clip    g = gemm(x, dy); norm of g; g clipped in place              "clip.dw", "clip.norm", "clip.clip"
///   packed  set-up: w2 = copy of w; y = gemm(x, w2)                     "packed.copy" (set-up), "packed.gemm"
///   last    s = a + b                                                   "last.add"
[[nodiscard]] std::vector<PlannedCase> sim_cases();

/// A case with fusible ops: u = gemm(x, w); s = x + u; y = norm(s); z = gemm(y, w) + s. Ops "residual.up",
/// "residual.sum", "residual.norm", "residual.down", "residual.out".
[[nodiscard]] PlannedCase residual_case(bool fuse);

/// A case with both kinds of bias gradients: ops "linear.dhidden", "linear.dw", "linear.db" (of dy), "linear.dz",
/// "linear.sum" (of dz).
[[nodiscard]] PlannedCase linear_case();

/// The table's gradients of a tied embedding: ops "tied.head", "tied.embedding" and their "tied.sum", then "tied.norm".
[[nodiscard]] PlannedCase tied_case();

/// A step with two in-place updates of state and a reader: c' = a + c, d' = a + d, s = c' + d'. Ops "step.c", "step.d",
/// "step.sum".
[[nodiscard]] PlannedCase step_case();

[[nodiscard]] std::string sim_id(const std::string& name);

/// Encodes only the fields that the isolation tests read.
class TextCodec : public RecordCodec {
 public:
  [[nodiscard]] std::string encode(const CaseRecord& record) const override;
  [[nodiscard]] CaseRecord decode(std::string_view text) const override;
};

}  // namespace gpubench::sim

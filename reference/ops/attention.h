// Scaled dot-product attention, multi-head and grouped-query, with its log-sum-exp.
// Vaswani et al., arXiv 1706.03762; grouped-query: Ainslie et al., arXiv 2305.13245; backward from saved O and
// log-sum-exp: Dao et al., arXiv 2205.14135, appendix B.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind attention_forward_kind{"attention_forward", "q k v", "o lse"};
inline constexpr OpKind attention_backward_kind{"attention_backward", "do q k v o lse", "dq dk dv"};

/// forward: q [b, s, hq, d], k [b, s, hkv, d], v [b, s, hkv, d] -> o [b, s, hq, d] (q's type), lse [b, hq, s] (f32)
///   p = softmax(scale q k^T) over keys, o = p v, lse = log sum exp(scale q k^T); query head h uses kv head
///   h / (hq / hkv). causal: query i attends to keys 0..i.
/// backward: do, q, k, v, o, lse -> dq, dk, dv (as q, k, v); reads o and lse as given.
/// q, k, v, dq, dk, dv may be strided parts of packed storages; the last axis is contiguous.
struct Attention {
  bool causal = true;
  double scale = 1.0;  ///< usually 1 / sqrt(d)
  static void visit(auto&& attribute) {
    attribute("causal", &Attention::causal, AsWord{"full", "causal"});
    attribute("scale", &Attention::scale);
  }
};

struct AttentionExtents {
  std::int64_t b = 0, s = 0, hq = 0, hkv = 0, d = 0;
};
/// Throws ProgramError naming the tensor, its shape and the expected one.
[[nodiscard]] AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v);

struct AttentionForward {
  ValueId o, lse;
};
AttentionForward attention_forward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                   ValueId q, ValueId k, ValueId v);
struct AttentionBackward {
  ValueId dq, dk, dv;
};
/// `into`: reserved values for dq, dk, dv (parts of a packed gradient); otherwise they are reserved here, row-major.
AttentionBackward attention_backward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                     ValueId d_o, ValueId q, ValueId k, ValueId v, ValueId o, ValueId lse,
                                     const std::optional<std::array<ValueId, 3>>& into = {});

}  // namespace gpubench

// Scaled dot-product attention, multi-head and grouped-query, with its log-sum-exp.
// Vaswani et al., arXiv 1706.03762; grouped-query: Ainslie et al., arXiv 2305.13245; backward from saved O and
// log-sum-exp: Dao et al., arXiv 2205.14135, appendix B; sliding window: Jiang et al., arXiv 2310.06825 (Mistral 7B);
// softcap: Gemma Team, arXiv 2408.00118 (Gemma 2); sinks: OpenAI, arXiv 2508.10925 (gpt-oss); joined from blocks of
// keys: Liu et al., arXiv 2310.01889 (ring attention).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

struct Attention {
  bool causal = true;       ///< query i sees keys 0..i + t - s: the last query all of them ("bottom right")
  double scale = 1.0;       ///< usually 1 / sqrt(d)
  std::int64_t window = 0;  ///< if causal: a query sees only the last `window` of these keys; 0: all
  double softcap = 0.0;     ///< limit of |score|; 0: none
  bool sinks = false;       ///< set by the builders
  bool documents = false;   ///< set by the builders
  static void visit(auto&& attribute) {
    attribute("causal", &Attention::causal, AsWord{"full", "causal"});
    attribute("scale", &Attention::scale);
    attribute("window", &Attention::window);
    attribute("softcap", &Attention::softcap);
    attribute("sinks", &Attention::sinks);
    attribute("documents", &Attention::documents);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return operand == "documents" ? documents : (operand == "sinks" || operand == "dsinks") && sinks;
  }
};

inline constexpr OpKind attention_forward_kind{"attention_forward", "q k v sinks? documents?", "o lse",
                                               defaults_of<Attention>, R"(
Scaled dot-product attention, multi-head and grouped-query, with its log-sum-exp.
q: [b, s, hq, d]
k: [b, t, hkv, d]
v: [b, t, hkv, dv]
sinks: [hq], lse's type: a logit per query head, part of the softmax, without a value
documents: i32 [b, n], s = t: boundaries of each row's documents (cumulative lengths: 0, ..., s)
o: [b, s, hq, dv], q's type
lse: f32 [b, hq, s]

x = scale q k^T; if softcap is not 0: softcap tanh(scale q k^T / softcap)
lse = log(sum exp(x) + exp(sink)), p = exp(x - lse), o = p v
Sums are over the keys that a query sees, without exp(sink) if there are no sinks. Query head h uses head
h / (hq / hkv) of k and v. q, k and v may be strided parts of packed storages; the last axis is contiguous.

  causal     query i sees keys 0..i + t - s: the last query all of them ("bottom right"). With more queries than
             keys, the first s - t see none: o = 0, lse = -infinity, or the sink
  window     if causal: a query sees only the last `window` of these keys; 0: all
  documents  a query sees the keys of its document: from the largest entry that is at most its index (else 0) up to
             the smallest entry above it (else s)

Source: Vaswani et al., arXiv 1706.03762; grouped-query: Ainslie et al., arXiv 2305.13245; sliding window: Jiang et
al., arXiv 2310.06825 (Mistral 7B); softcap: Gemma Team, arXiv 2408.00118 (Gemma 2); sinks: OpenAI, arXiv 2508.10925
(gpt-oss))"};

inline constexpr OpKind attention_backward_kind{"attention_backward", "do q k v o lse sinks? documents?",
                                                "dq dk dv dsinks?", defaults_of<Attention>, R"(
The gradients of attention_forward, from its saved o and lse, which are read as given.
do, o: [b, s, hq, dv]
q: [b, s, hq, d]
k: [b, t, hkv, d]
v: [b, t, hkv, dv]
lse: f32 [b, hq, s]
sinks: [hq]
documents: i32 [b, n]
dq: as q
dk: as k
dv: as v
dsinks: as sinks

ds = p (do v^T - rowsum(do o)), p = exp(x - lse), x as in the forward
dq = scale ds k, dk = scale ds^T q, dv = p^T do, dsinks = -sum over rows of exp(sink - lse) rowsum(do o)
With softcap, ds is multiplied by 1 - (x / softcap)^2. Gradients of k and v are sums over the query heads that use
them. causal, window, sinks and documents are the forward's. Tensors may be strided parts of packed storages; the
last axis is contiguous.

Source: Dao et al., arXiv 2205.14135, appendix B)"};

inline constexpr OpKind attention_merge_kind{"attention_merge", "o1 lse1 o2 lse2", "o lse", {}, R"(
Attention to two sets of keys, joined to attention to all of them.
o1, o2, o: [b, s, hq, dv]
lse1, lse2, lse: f32 [b, hq, s]

lse = log(exp(lse1) + exp(lse2)), o = o1 exp(lse1 - lse) + o2 exp(lse2 - lse), with lse as stored or before
rounding. If both are -infinity (a query that sees no keys), lse is -infinity and o = 0.

Source: Liu et al., Ring Attention with Blockwise Transformers, arXiv 2310.01889)"};

struct AttentionExtents {
  std::int64_t b = 0, s = 0, hq = 0, hkv = 0, d = 0;
  std::int64_t t = 0;    ///< number of keys; s is that of queries
  std::int64_t d_v = 0;  ///< width of v's and o's heads; d is that of q's and k's
};
/// Throws ProgramError naming the tensor, its shape and the expected one.
[[nodiscard]] AttentionExtents extents_of(const Shape& q, const Shape& k, const Shape& v);

struct AttentionOptions {
  std::optional<ValueId> sinks{}, documents{};
};

struct AttentionForward {
  ValueId o, lse;
};
/// `into`: reserved values for the outputs.
AttentionForward attention_forward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                   ValueId q, ValueId k, ValueId v, const AttentionOptions& options = {},
                                   const std::optional<AttentionForward>& into = {});
AttentionForward attention_merge(Program& program, const Math& math, std::string label, const AttentionForward& one,
                                 const AttentionForward& other, const std::optional<AttentionForward>& into = {});
struct AttentionBackward {
  ValueId dq, dk, dv;
  std::optional<ValueId> dsinks;
};
/// Reserved values for gradients, such as parts of a packed one; absent ones are reserved row-major.
struct AttentionGradients {
  std::optional<ValueId> dq{}, dk{}, dv{}, dsinks{};
};
AttentionBackward attention_backward(Program& program, const Attention& attributes, const Math& math, std::string label,
                                     ValueId d_o, ValueId q, ValueId k, ValueId v, ValueId o, ValueId lse,
                                     const AttentionOptions& options = {}, const AttentionGradients& into = {});

}  // namespace gpubench
